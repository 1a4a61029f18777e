//! Why an argument did not become a machine.
//!
//! [`MachineError`] is the one error of the layer. [`MachineError::is_usage`] tells
//! a wrongly written argument (exit status 2) from an input that failed (1).

use std::path::PathBuf;

/// Why there is no machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// No machine of the built-in library has this name.
    #[error("no built-in machine is called @{name}{}; there are: {}",
        near(.suggestion), .known.join(", "))]
    UnknownName {
        /// What was asked for, without the `@`.
        name: String,
        /// The nearest name, if one is near.
        suggestion: Option<String>,
        /// All names, with their `@`.
        known: Vec<String>,
    },
    /// The text is not a synthetic topology.
    #[error("{text:?} is neither a file nor an hwloc synthetic topology: {problem}")]
    Synthetic {
        /// The text as given.
        text: String,
        /// What is wrong, and how to write it.
        problem: String,
    },
    /// The path names nothing.
    #[error("{}: no such file; expected one that describes a \
        machine, or write host, @NAME or a synthetic topology", .path.display())]
    NoSuchFile {
        /// The path as given.
        path: PathBuf,
    },
    /// The file cannot be read, or is not text.
    #[error("{}: {problem}", .path.display())]
    Unreadable {
        /// The path as given.
        path: PathBuf,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// The content is not what its format demands.
    #[error("{name}{}: {problem}", at_line(.line))]
    Content {
        /// The file.
        name: String,
        /// The line, counted from 1, where one can be named.
        line: Option<usize>,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// Two inputs say different things about one machine.
    #[error(
        "the inputs contradict each other about {what}: {first}, but {second}; they have to be \
        of one machine"
    )]
    Contradiction {
        /// What differs.
        what: String,
        /// The first place and what it says.
        first: String,
        /// The second.
        second: String,
    },
    /// The input leaves out what cannot be guessed.
    #[error("{input}: {what}; give {flag}")]
    Missing {
        /// The input.
        input: String,
        /// What is missing.
        what: String,
        /// The flag that gives it.
        flag: String,
    },
    /// A log holds several boots, and one of them has to be chosen.
    #[error("{input} holds {} boots; choose one with --boot N:{}", .boots.len(), listed(.boots))]
    SeveralBoots {
        /// The input.
        input: String,
        /// One line about each.
        boots: Vec<String>,
    },
    /// This program lacks the library that the input needs.
    #[error(
        "{what} needs hwloc, and this program was built without it; build it with its default \
        features, or give machine TOML, a sysfs tree or another text"
    )]
    WithoutHwloc {
        /// What was asked for.
        what: String,
    },
    /// This host could not be described.
    #[error("cannot describe this host: {problem}")]
    Host {
        /// What failed and what to do.
        problem: String,
    },
}

impl MachineError {
    /// Whether the argument itself is wrong, rather than what it names.
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::UnknownName { .. }
                | Self::Synthetic { .. }
                | Self::Missing { .. }
                | Self::SeveralBoots { .. }
        )
    }

    /// An error in the content of `name`.
    pub(super) fn content(name: &str, line: Option<usize>, problem: impl Into<String>) -> Self {
        Self::Content { name: name.into(), line, problem: problem.into() }
    }
}

fn listed(boots: &[String]) -> String {
    boots.iter().zip(1..).map(|(boot, n)| format!("\n  {n}: {boot}")).collect()
}

fn near(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map_or(String::new(), |s| format!(" (did you mean @{s}?)"))
}

fn at_line(line: &Option<usize>) -> String {
    line.map_or(String::new(), |l| format!(":{l}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_file_line_and_remedy() {
        let error = MachineError::content("big.toml", Some(7), "CPU 3 is in two nodes");
        assert_eq!(error.to_string(), "big.toml:7: CPU 3 is in two nodes");
        assert!(!error.is_usage());
        let known = vec!["@vm-2c".to_string()];
        let error = MachineError::UnknownName {
            name: "vm".into(),
            suggestion: Some("vm-2c".into()),
            known,
        };
        assert!(error.to_string().contains("did you mean @vm-2c?"));
        assert!(error.is_usage());
    }
}
