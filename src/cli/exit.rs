//! Exit statuses, and which error ends in which.
//!
//! The statuses are part of the interface: scripts rely on them.

use crate::exec::ExecError;
use crate::host::HostError;
use crate::host::budget::BudgetError;
use crate::host::store::StoreError;
use crate::kernel::layout::LayoutError;
use crate::lab::LabError;
use crate::machine::MachineError;
use crate::record::file::FileError;
use crate::study::StudyError;
use crate::study::published::FiguresError;
use std::io;
use std::process::ExitCode;

/// Something failed.
pub(super) const FAILED: u8 = 1;
/// The command line cannot be met.
pub(super) const USAGE: u8 = 2;
/// The result is not to be trusted, and `--strict` asked to say so.
pub(super) const UNTRUSTWORTHY: u8 = 3;
/// `diff`: the second record is slower.
pub(super) const SLOWER: u8 = 4;
/// A run left other bytes than it should.
pub(super) const WRONG_DATA: u8 = 5;
/// Not enough memory, threads or CPUs.
pub(super) const NO_RESOURCES: u8 = 6;
/// This host cannot do it.
pub(super) const NOT_SUPPORTED: u8 = 7;
/// The user ended it.
pub(super) const INTERRUPTED: u8 = 130;

/// Why a verb ended early.
#[derive(Debug)]
pub(super) struct Failure {
    code: u8,
    message: Option<String>,
}

impl Failure {
    /// An exit status with a message for people.
    pub(super) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: Some(message.into()) }
    }

    /// A command line that cannot be met.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, message)
    }

    /// What to tell people, if anything.
    pub(super) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The process's exit status.
    pub(super) fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl From<io::Error> for Failure {
    /// A reader that has seen enough is no failure: end silently.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { code: 0, message: None };
        }
        Self::new(FAILED, format!("writing the output failed: {error}"))
    }
}

impl From<MachineError> for Failure {
    fn from(error: MachineError) -> Self {
        Self::new(machine_code(&error), error.to_string())
    }
}

impl From<BudgetError> for Failure {
    fn from(error: BudgetError) -> Self {
        Self::new(FAILED, error.to_string())
    }
}

impl From<LayoutError> for Failure {
    fn from(error: LayoutError) -> Self {
        Self::new(FAILED, error.to_string())
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Self::new(host_code(&error), error.to_string())
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::new(file_code(&error), error.to_string())
    }
}

impl From<FiguresError> for Failure {
    fn from(error: FiguresError) -> Self {
        Self::new(FAILED, error.to_string())
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        let code = match &error {
            StudyError::Usage(_) | StudyError::Anchor(_) => USAGE,
            StudyError::Store(StoreError::Unknown { .. }) => USAGE,
            StudyError::Store(StoreError::Missing { .. }) => NOT_SUPPORTED,
            StudyError::NoMemory { .. } | StudyError::Window(_) => NO_RESOURCES,
            StudyError::WrongData { .. } => WRONG_DATA,
            StudyError::Exec(error) => exec_code(error),
            StudyError::Layout(_) => FAILED,
            StudyError::Machine(error) => machine_code(error),
            StudyError::File(error) => file_code(error),
            StudyError::Lab(error) => lab_code(error),
        };
        Self::new(code, error.to_string())
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Self::new(lab_code(&error), error.to_string())
    }
}

fn lab_code(error: &LabError) -> u8 {
    match error {
        LabError::Usage(_) | LabError::Store(StoreError::Unknown { .. }) => USAGE,
        LabError::Store(StoreError::Missing { .. }) | LabError::NotSupported(_) => NOT_SUPPORTED,
        LabError::NoMemory { .. } => NO_RESOURCES,
        LabError::WrongData { .. } => WRONG_DATA,
        LabError::Host(error) => host_code(error),
        LabError::Budget(_) => FAILED,
        LabError::File(error) => file_code(error),
    }
}

const fn file_code(error: &FileError) -> u8 {
    if error.is_usage() { USAGE } else { FAILED }
}

fn machine_code(error: &MachineError) -> u8 {
    match error {
        error if error.is_usage() => USAGE,
        MachineError::Host { .. } => NOT_SUPPORTED,
        _ => FAILED,
    }
}

const fn exec_code(error: &ExecError) -> u8 {
    match error {
        ExecError::Host(error) => host_code(error),
        ExecError::Store(_) | ExecError::NoImageStore { .. } => NOT_SUPPORTED,
        ExecError::Spawn(_) | ExecError::TeamBroken | ExecError::Misplaced { .. } => NO_RESOURCES,
        ExecError::UnknownNode(_) => FAILED,
    }
}

const fn host_code(error: &HostError) -> u8 {
    match error {
        HostError::NotThisSystem { .. } | HostError::Topology(_) | HostError::WithoutHwloc => {
            NOT_SUPPORTED
        }
        HostError::Interrupted => INTERRUPTED,
        HostError::NoSuchNode { .. } | HostError::BindTooLate { .. } => FAILED,
        _ => NO_RESOURCES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::verify::Mismatch;
    use crate::kernel::layout::ZoneKind;

    #[test]
    fn wrong_data_ends_in_a_status_of_its_own() {
        let what = "missing; 3 blocks belong on it".to_owned();
        let mismatch = Mismatch::List { nid: 1, zone: ZoneKind::Normal, order: 10, copy: 0, what };
        let error = StudyError::WrongData {
            strategy: "fused-nt".into(),
            run: 2,
            mismatch: Box::new(mismatch),
        };
        let failure = Failure::from(error);
        assert_eq!(failure.code, WRONG_DATA);
        let message = failure.message().unwrap_or_default();
        assert!(message.starts_with("fused-nt left wrong data in run 2: free list"), "{message}");
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failure.code, failure.message()), (0, None));
        assert_eq!(Failure::from(io::Error::other("disk full")).code, FAILED);
    }
}
