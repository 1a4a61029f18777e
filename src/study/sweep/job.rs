//! One sweep while it is done: what was asked, and the figures that there are.
//!
//! A [`Job`] has one place for every combination, which [`super::predict`] and
//! [`super::measure`] fill, and makes a record of them at any time. It goes on from a
//! record only when that answers the same question.

use super::findings::{Series, best_chunks};
use super::shapes::Shape;
use super::{Axes, Combination, Measure};
use crate::kernel::KernelVersion;
use crate::machine::Machine;
use crate::model::range::extrapolation;
use crate::model::{Setup, Virt};
use crate::record::sweep::{
    MachineShape, SWEEP_SCHEMA, SkippedPoint, Sweep, SweepPoint, SweepQuestion,
};
use crate::record::{Head, HostFacts, Label};
use crate::study::StudyError;
use crate::study::estimate::{Case, Question};
use crate::warning::Warning;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::{self, Write};

/// What became of a combination.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// A figure.
    Point(Box<SweepPoint>),
    /// There is none, for this reason.
    Skipped(String),
}

/// A sweep while it is done.
pub(super) struct Job<'j> {
    pub(super) machine: &'j Machine,
    pub(super) axes: &'j Axes,
    pub(super) question: &'j Question,
    pub(super) shapes: Vec<Shape>,
    /// Options and anchors, as they hold for the machine as it is.
    pub(super) setup: Setup,
    /// One place per combination.
    pub(super) outcomes: Vec<Option<Outcome>>,
    pub(super) head: Head,
    pub(super) host: Option<HostFacts>,
    asked: SweepQuestion,
    class: String,
}

impl<'j> Job<'j> {
    /// A job of which nothing is done.
    ///
    /// # Errors
    /// When the machine has no memory, or anchors contradict.
    pub(super) fn new(
        machine: &'j Machine,
        axes: &'j Axes,
        question: &'j Question,
        measure: Option<&Measure<'_>>,
    ) -> Result<Self, StudyError> {
        let nothing = || StudyError::Usage("the sweep has no points".into());
        let (kernel, strategy) =
            axes.kernels.first().zip(axes.strategies.first()).ok_or_else(nothing)?;
        let mut case = Case::new(machine, kernel, question)?;
        let plan = case.plan(*strategy, Some(1), None, question.free);
        case.anchor(&plan, &question.anchors)?;
        let shapes = axes.shapes();
        let count = shapes.len() * axes.kernels.len() * axes.per_case();
        let head = Head::unfinished(SWEEP_SCHEMA, &question.argv)
            .with_warnings(warnings(machine, axes, &case));
        Ok(Self {
            machine,
            axes,
            question,
            shapes,
            outcomes: vec![None; count],
            head,
            host: None,
            asked: asked(machine, axes, question, measure),
            class: case.hardware.class.name.clone(),
            setup: case.setup,
        })
    }

    /// The combination with this number.
    pub(super) fn at(&self, index: usize) -> Option<Combination> {
        self.axes.at(&self.shapes, index)
    }

    /// The numbers of one machine's and kernel's combinations.
    pub(super) fn case_range(&self, case: usize) -> std::ops::Range<usize> {
        let per_case = self.axes.per_case();
        case * per_case..(case + 1) * per_case
    }

    /// How many pairs of machine and kernel there are.
    pub(super) fn cases(&self) -> usize {
        self.shapes.len() * self.axes.kernels.len()
    }

    /// Whether every combination has a figure or a reason.
    pub(super) fn is_complete(&self) -> bool {
        let done = |outcome: &Option<Outcome>| match outcome {
            Some(Outcome::Point(point)) => self.is_whole(point),
            other => other.is_some(),
        };
        self.outcomes.iter().all(done)
    }

    /// Whether a point has all of its runs.
    fn is_whole(&self, point: &SweepPoint) -> bool {
        let wanted = self.asked.runs.unwrap_or(0) as usize;
        point.measured.as_ref().map_or(0, |m| m.samples_ns.len()) >= wanted
    }

    /// The machine of a point: as asked for, where it was.
    pub(super) fn shape_of(&self, shape: Shape) -> MachineShape {
        let with_memory = self.machine.nodes.iter().filter(|n| !n.memory.is_empty());
        let nodes = shape.nodes.or_else(|| u32::try_from(with_memory.count()).ok());
        let own_bytes = || match shape.nodes {
            None => self.machine.memory_bytes(),
            Some(_) => shape.of(self.machine).map_or(0, |m| m.memory_bytes()),
        };
        MachineShape {
            nodes,
            memory_bytes: Some(shape.memory_bytes.unwrap_or_else(own_bytes)),
            page_bytes: Some(shape.page_bytes.unwrap_or(self.machine.page_bytes)),
        }
    }

    /// What there is, as a record.
    pub(super) fn record(&self) -> Sweep {
        let points: Vec<SweepPoint> = self.points().cloned().collect();
        let series = Series::of(&points);
        let (knees, setup_zero) = (series.knees(), series.setup_zero());
        let measure = self.asked.measure;
        Sweep {
            head: Head { complete: self.is_complete(), ..self.head.clone() },
            label: if measure { Label::Measured } else { Label::Modelled },
            question: Some(self.asked.clone()),
            host: self.host.clone(),
            machine: self.machine.name.clone(),
            title: self.machine.title.clone(),
            class: self.class.clone(),
            knees,
            best_chunks: match self.axes.chunks.len() {
                0 | 1 => Vec::new(),
                _ => best_chunks(&points),
            },
            setup_zero,
            skipped: self.skipped(),
            points,
        }
    }

    fn points(&self) -> impl Iterator<Item = &SweepPoint> {
        self.outcomes.iter().filter_map(|outcome| match outcome {
            Some(Outcome::Point(point)) => Some(point.as_ref()),
            _ => None,
        })
    }

    fn skipped(&self) -> Vec<SkippedPoint> {
        let of = |(index, outcome): (usize, &Option<Outcome>)| {
            let Some(Outcome::Skipped(reason)) = outcome else { return None };
            let Combination { shape, kernel, strategy, chunk_bytes, threads } = self.at(index)?;
            Some(SkippedPoint {
                kernel: self.axes.kernels.get(kernel)?.version.to_string(),
                strategy: strategy.name().into(),
                threads,
                chunk_bytes,
                nodes: shape.nodes,
                memory_bytes: shape.memory_bytes,
                page_bytes: shape.page_bytes,
                reason: reason.clone(),
            })
        };
        self.outcomes.iter().enumerate().filter_map(of).collect()
    }

    /// Takes the points of a record that answers the same question. Its command line
    /// stays: the record is still that sweep's.
    ///
    /// # Errors
    /// Says what differs.
    pub(super) fn go_on_from(&mut self, kept: Sweep) -> Result<(), StudyError> {
        check_same(self.machine, &self.asked, &self.head, &kept)?;
        let places = self.places();
        let versions: Vec<String> =
            self.axes.kernels.iter().map(|k| k.version.to_string()).collect();
        for point in kept.points {
            if !self.is_whole(&point) {
                continue;
            }
            let kernel = versions.iter().position(|version| *version == point.kernel);
            let key = kernel.map(|kernel| Place {
                kernel,
                strategy: point.strategy.clone(),
                chunk_bytes: point.chunk_bytes,
                threads: point.threads,
                shape: point.shape(),
            });
            let index = key.and_then(|key| places.get(&key).copied());
            let slot = index.and_then(|index| self.outcomes.get_mut(index));
            let slot = slot.ok_or_else(|| {
                let what = format!("a point of {} under {}", point.strategy, point.kernel);
                mismatch(&format!("it holds {what}, which was not asked for"))
            })?;
            *slot = Some(Outcome::Point(Box::new(point)));
        }
        self.head.argv = kept.head.argv;
        if self.asked.measure {
            // What was seen of runs that are not repeated.
            self.head.warnings = kept.head.warnings;
            self.host = kept.host;
        }
        Ok(())
    }

    /// Where each combination's outcome is.
    fn places(&self) -> HashMap<Place, usize> {
        let shapes: HashMap<_, _> =
            self.shapes.iter().map(|s| (key_of(*s), self.shape_of(*s))).collect();
        let place = |index: usize| {
            let Combination { shape, kernel, strategy, chunk_bytes, threads } = self.at(index)?;
            let shape = *shapes.get(&key_of(shape))?;
            let strategy = strategy.name().to_owned();
            Some((Place { kernel, strategy, chunk_bytes, threads, shape }, index))
        };
        (0..self.outcomes.len()).filter_map(place).collect()
    }
}

/// What tells combinations apart.
#[derive(PartialEq, Eq, Hash)]
struct Place {
    kernel: usize,
    strategy: String,
    chunk_bytes: Option<u64>,
    threads: u32,
    shape: MachineShape,
}

const fn key_of(shape: Shape) -> (Option<u32>, Option<u64>, Option<u64>) {
    (shape.nodes, shape.memory_bytes, shape.page_bytes)
}

fn asked(
    machine: &Machine,
    axes: &Axes,
    question: &Question,
    measure: Option<&Measure<'_>>,
) -> SweepQuestion {
    SweepQuestion {
        machine_digest: digest(machine),
        kernels: axes.kernels.iter().map(|k| k.version.to_string()).collect(),
        kernels_digest: digest(&axes.kernels),
        strategies: axes.strategies.iter().map(|s| s.name().into()).collect(),
        threads: axes.threads.clone(),
        chunk_bytes: axes.chunks.clone(),
        nodes: axes.nodes.clone(),
        memory_bytes: axes.memory_bytes.clone(),
        page_bytes: axes.page_bytes.clone(),
        free: question.free,
        virt: question.virt.map(|virt| match virt {
            Virt::BareMetal => "bare-metal".into(),
            Virt::Guest => "guest".into(),
        }),
        anchors: question.anchors.iter().map(ToString::to_string).collect(),
        measure: measure.is_some(),
        runs: measure.map(|m| m.runs),
        seed: measure.map(|m| m.seed),
        buffer_bytes: measure.and_then(|m| m.buffer_bytes),
    }
}

/// FNV-1a over what a value shows of itself: two values that differ have, in all
/// likelihood, two numbers.
pub(super) fn digest(value: &impl fmt::Debug) -> String {
    struct Fnv(u64);
    impl Write for Fnv {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for byte in text.bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
            Ok(())
        }
    }
    let mut sum = Fnv(0xcbf2_9ce4_8422_2325);
    let _ = write!(sum, "{value:?}");
    format!("{:016x}", sum.0)
}

fn mismatch(what: &str) -> StudyError {
    StudyError::Usage(format!(
        "the record to resume is of another sweep: {what}; repeat the command that made it \
         (its \"argv\"), or name another file"
    ))
}

/// Refuses to mix the answers of two questions.
fn check_same(
    machine: &Machine,
    asked: &SweepQuestion,
    head: &Head,
    kept: &Sweep,
) -> Result<(), StudyError> {
    let (found, now) = (&kept.head.tool, &head.tool);
    if found != now {
        let text = format!("made by {} {}", found.name, found.version);
        return Err(mismatch(&format!("{text}, this is {} {}", now.name, now.version)));
    }
    let Some(question) = &kept.question else {
        return Err(mismatch("it does not say what was asked for"));
    };
    let fields = |question| match serde_json::to_value(question) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (found, now) = (fields(question), fields(asked));
    let differs = now.iter().filter(|(name, value)| found.get(*name) != Some(value));
    let of = |value: Option<&Value>| value.map_or_else(|| "nothing".into(), short);
    let texts: Vec<String> = differs
        .map(|(name, value)| match name.as_str() {
            "machine_digest" => format!("its machine is another than {}", machine.name),
            "kernels_digest" => "the rules of its kernels are others".into(),
            name => {
                let (before, name) = (of(found.get(name)), name.replace('_', " "));
                format!("its {name}: {before}, now {}", short(value))
            }
        })
        .collect();
    if texts.is_empty() { Ok(()) } else { Err(mismatch(&texts.join("; "))) }
}

/// A value for people: long lists are cut.
fn short(value: &Value) -> String {
    const MOST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

fn warnings(machine: &Machine, axes: &Axes, case: &Case) -> Vec<Warning> {
    let mut out = machine.warnings.clone();
    out.extend(case.hardware.warnings.iter().cloned());
    let most = axes.threads.last().copied().unwrap_or(1);
    let versions = axes.kernels.iter().map(|k| k.version);
    let far: Vec<(KernelVersion, &str)> =
        versions.filter_map(|v| Some((v, extrapolation(v, machine.arch, most)?))).collect();
    if let Some((version, why)) = far.first() {
        let text = format!("extrapolated from {version} on or in parts: {why}");
        out.push(Warning::new("extrapolated", text, "ranges are wider there"));
    }
    let is_varied = axes.shapes().iter().any(|shape| *shape != Shape::default());
    out.extend(is_varied.then(|| {
        let text = format!(
            "machines with other nodes, memory or pages are made up from {}: equal nodes, \
             assumed addresses and distances",
            machine.name
        );
        Warning::new("varied-machine", text, "describe a machine in a file where it matters")
    }));
    out
}
