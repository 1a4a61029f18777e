//! `--kernel`, `--config` and `--cmdline`, and the rules that they mean.

use super::exit::{FAILED, Failure};
use super::inputs;
use crate::kernel::KernelModel;
use crate::kernel::cmdline::CommandLine;
use crate::kernel::config::{ConfigError, KernelConfig};
use crate::machine::MachineError;
use crate::machine::bootlog::{Boot, InitForm};
use crate::machine::{Arch, Machine, text};
use crate::warning::Warning;
use clap::Args;
use std::path::Path;

/// What says under which rules a machine boots.
#[derive(Debug, Args)]
pub(super) struct KernelArgs {
    /// Rules of this Linux version or release, such as 6.12 or 5.10.0-32-cloud-amd64
    /// [default: the machine's own where it is known, else the newest]
    #[arg(long, value_name = "VERSION")]
    pub(super) kernel: Option<String>,
    /// A kernel configuration such as /boot/config-*, or one option of it; repeatable
    #[arg(long, value_name = "FILE|KEY=VALUE")]
    config: Vec<String>,
    /// Options of the kernel command line, such as 'numa=fake=4 mem=8G'
    #[arg(long, value_name = "TEXT")]
    cmdline: Option<String>,
}

/// The rules that were chosen.
pub(super) struct Chosen {
    /// The kernel in its configuration.
    pub(super) kernel: KernelModel,
    /// The command line, where one was given.
    pub(super) line: Option<CommandLine>,
    /// What was assumed.
    pub(super) warnings: Vec<Warning>,
}

impl KernelArgs {
    /// The rules for `machine`.
    pub(super) fn choose(&self, machine: &Machine) -> Result<Chosen, Failure> {
        self.choose_version(machine, self.kernel.as_deref())
    }

    /// The same with another version.
    pub(super) fn choose_version(
        &self,
        machine: &Machine,
        version: Option<&str>,
    ) -> Result<Chosen, Failure> {
        let (kernel, mut warnings) = inputs::kernel_model(machine, version)?;
        let mut config = kernel.config.clone();
        for text in &self.config {
            apply(&mut config, text)?;
        }
        let line = self.cmdline.as_deref().map(str::parse::<CommandLine>).transpose();
        let line = line.map_err(|e| Failure::usage(format!("--cmdline: {e}")))?;
        let fakes = line.as_ref().is_some_and(|l| l.numa_fake.is_some());
        if fakes && !config.numa_emu && self.may_assume_emulation(machine) {
            config.numa_emu = true;
            warnings.push(emulation_assumed());
        }
        Ok(Chosen { kernel: kernel.with_config(config), line, warnings })
    }

    /// The same, with the command line of a log where none was given.
    pub(super) fn choose_with_log(
        &self,
        machine: &Machine,
        log: Option<&Boot>,
    ) -> Result<Chosen, Failure> {
        let named = self.kernel.is_some() || machine.kernel_release.is_some();
        let by_lines = log.filter(|_| !named).and_then(version_of_lines);
        let mut chosen = self.choose_version(machine, by_lines.or(self.kernel.as_deref()))?;
        if let Some(version) = by_lines {
            let text =
                format!("the log names no kernel; its lines are those of {version} or before");
            chosen.warnings.push(Warning::new("kernel-by-lines", text, "name one with --kernel"));
        }
        let logged = log.filter(|_| self.cmdline.is_none() && machine.boot.is_none());
        if let Some(fact) = logged.and_then(|boot| boot.cmdline.as_ref()) {
            match CommandLine::of_log(&fact.value) {
                Ok(line) => chosen.line = Some(line),
                Err(error) => chosen.warnings.push(Warning::new(
                    "command-line",
                    format!("the log's command line (line {}) is left out: {error}", fact.line),
                    "give the options that matter with --cmdline",
                )),
            }
        }
        Ok(chosen)
    }

    /// Whoever asks for fake nodes means a kernel that has them, unless a configuration
    /// was given or is known.
    fn may_assume_emulation(&self, machine: &Machine) -> bool {
        self.config.is_empty()
            && machine.boot.is_none()
            && matches!(machine.arch, Arch::X86_64 | Arch::Arm64)
    }
}

/// The newest version that prints lines of the log's form, where newer ones print others.
fn version_of_lines(log: &Boot) -> Option<&'static str> {
    match log.init.first()?.form {
        InitForm::Pages => Some("5.7"),
        InitForm::Kswapd | InitForm::KswapdPages => Some("4.2"),
        InitForm::Deferred => None,
    }
}

fn emulation_assumed() -> Warning {
    Warning::new(
        "numa-emu-assumed",
        "numa=fake= needs CONFIG_NUMA_EMU, which few distributions set; it is taken to be set",
        "give the configuration with --config, or NUMA_EMU=n",
    )
}

/// A file's text, or one option.
fn apply(config: &mut KernelConfig, text: &str) -> Result<(), Failure> {
    let path = Path::new(text);
    if text.contains('=') && !path.exists() {
        let wrong = |error: ConfigError| Failure::usage(format!("--config {text}: {error}"));
        return config.apply_pair(text).map_err(wrong);
    }
    if !path.exists() {
        return Err(Failure::usage(format!(
            "--config {text}: no such file; give a kernel configuration, or KEY=VALUE"
        )));
    }
    let unreadable = |e: MachineError| Failure::new(FAILED, format!("--config {e}"));
    let file = text::open(path).map_err(unreadable)?;
    let bytes = text::read_all(&path.to_string_lossy(), file).map_err(unreadable)?;
    let content = String::from_utf8_lossy(&bytes);
    if !content.lines().any(|l| l.trim_start_matches("# ").starts_with("CONFIG_")) {
        return Err(Failure::new(
            FAILED,
            format!("--config {text}: has no line CONFIG_…; give a file such as /boot/config-*"),
        ));
    }
    let wrong = |error: ConfigError| Failure::new(FAILED, format!("--config {text}: {error}"));
    config.apply_file(&content).map_err(wrong)
}
