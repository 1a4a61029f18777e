//! What is compared: strategies, each with the stores that fit it.

use super::StudyError;
use crate::host::store::{Store, StoreKind};
use crate::kernel::Layout;
use crate::nearest::nearest;
use crate::plan::probes::Probe;
use crate::plan::strategies::StoreRole;
use crate::plan::{BootPlan, Strategy};

/// One strategy with one store, or one probe, ready to be executed.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The strategy's or probe's name.
    pub name: String,
    /// The probe, unless it is a strategy.
    pub probe: Option<Probe>,
    /// The store chosen for it; `None` when it has no choice.
    pub store: Option<String>,
    /// The plan that is executed.
    pub executed: BootPlan,
    /// The plan of the whole machine, from which only page counts are taken.
    pub whole: BootPlan,
}

/// A strategy and the store chosen for it.
pub type Choice = (Strategy, Option<String>);

/// The strategies of these names; all of them for an empty list.
///
/// # Errors
/// For an unknown name, with the nearest one if any is near.
pub fn strategies(names: &[String]) -> Result<Vec<Strategy>, StudyError> {
    if names.is_empty() {
        return Ok(Strategy::ALL.to_vec());
    }
    names.iter().map(|name| Strategy::named(name).ok_or_else(|| unknown(name))).collect()
}

fn unknown(name: &str) -> StudyError {
    let all = Strategy::ALL.map(Strategy::name);
    let hint = nearest(name, all).map_or(String::new(), |near| format!(", did you mean {near:?}?"));
    let list = all.join(", ");
    StudyError::Usage(format!("no strategy is called {name:?}{hint}; there are {list}"))
}

/// Every strategy with each of the named stores that fits it; with its default where
/// none is named or none fits.
///
/// # Errors
/// For a store that is unknown, missing on this CPU, or fits no strategy here.
pub fn choices(strategies: &[Strategy], stores: &[String]) -> Result<Vec<Choice>, StudyError> {
    let named: Vec<Store> =
        stores.iter().map(|name| Store::named(name)).collect::<Result<_, _>>()?;
    for store in &named {
        if !strategies.iter().any(|s| fits(*store, s.store_role())) {
            let names: Vec<&str> = strategies.iter().map(|s| s.name()).collect();
            return Err(StudyError::Usage(format!(
                "the store {} fits none of {}; `pageinit strategies` lists what fits",
                store.name(),
                names.join(", ")
            )));
        }
    }
    let mut out = Vec::new();
    for &strategy in strategies {
        let role = strategy.store_role();
        let fitting: Vec<String> =
            named.iter().filter(|s| fits(**s, role)).map(|s| s.name().into()).collect();
        match fitting.is_empty() {
            true => out.push((strategy, default_store(role))),
            false => out.extend(fitting.into_iter().map(|name| (strategy, Some(name)))),
        }
    }
    Ok(out)
}

/// Whether a store can do what a role asks for.
pub fn fits(store: Store, role: StoreRole) -> bool {
    match role {
        StoreRole::Fixed => false,
        StoreRole::Zero => true,
        StoreRole::TemporalImage => store.writes_images() && store.kind() == StoreKind::Temporal,
        StoreRole::NonTemporalImage => {
            store.writes_images() && store.kind() == StoreKind::NonTemporal
        }
    }
}

/// The store a role gets when the user names none.
pub fn default_store(role: StoreRole) -> Option<String> {
    let store = match role {
        StoreRole::Fixed => return None,
        StoreRole::Zero => Store::default_zero(),
        StoreRole::TemporalImage => Store::best_image(StoreKind::Temporal),
        StoreRole::NonTemporalImage => Store::best_image(StoreKind::NonTemporal),
    };
    Some(store.name().into())
}

/// Makes the plans of all choices and of the three probes.
///
/// `chunk_pages` overrides padata's chunks.
pub fn candidates(
    choices: &[Choice],
    executed: &Layout,
    whole: &Layout,
    free: bool,
    chunk_pages: Option<u64>,
) -> Vec<Candidate> {
    let strategies = choices.iter().map(|(strategy, store)| Candidate {
        name: strategy.name().into(),
        probe: None,
        store: store.clone(),
        executed: chunked(strategy.plan(executed, store.as_deref(), free), chunk_pages),
        whole: strategy.plan(whole, store.as_deref(), free),
    });
    let probes = Probe::ALL.into_iter().map(|probe| Candidate {
        name: probe.name().into(),
        probe: Some(probe),
        store: None,
        executed: chunked(probe.plan(executed), chunk_pages),
        whole: probe.plan(whole),
    });
    strategies.chain(probes).filter(|c| !c.executed.phases.is_empty()).collect()
}

fn chunked(mut plan: BootPlan, chunk_pages: Option<u64>) -> BootPlan {
    for work in plan.phases.iter_mut().flat_map(|p| &mut p.work) {
        work.chunk_pages = chunk_pages.filter(|_| !work.jobs.is_empty());
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_strategy_gets_a_suggestion() {
        let error = strategies(&["defered".into()]).unwrap_err().to_string();
        assert!(error.contains("did you mean \"deferred\""), "{error}");
    }

    #[test]
    fn a_store_multiplies_only_the_strategies_it_fits() {
        let all = choices(&[Strategy::Prezero, Strategy::Deferred], &["portable".into()]);
        let all = all.unwrap();
        assert_eq!(all[0], (Strategy::Prezero, Some("portable".into())));
        assert_eq!(all[1], (Strategy::Deferred, None));
        let none = choices(&[Strategy::Deferred], &["portable".into()]);
        assert!(matches!(none, Err(StudyError::Usage(_))));
    }
}
