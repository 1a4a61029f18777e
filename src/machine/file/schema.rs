//! The keys of machine TOML, as serde sees them.
//!
//! Values that may be wrong in themselves are `Spanned`, so that errors name their
//! line. [`super`] explains the format.

use serde::Deserialize;
use toml::Spanned;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineToml {
    pub(super) title: Option<String>,
    pub(super) source: Option<String>,
    pub(super) arch: Spanned<String>,
    pub(super) page_size: Option<Spanned<String>>,
    pub(super) cpu_model: Option<String>,
    pub(super) kernel: Option<String>,
    pub(super) channels: Option<u32>,
    pub(super) mts: Option<u32>,
    pub(super) smt: Option<Spanned<u32>>,
    pub(super) threads: Option<Threads>,
    pub(super) distances: Option<Spanned<toml::Value>>,
    pub(super) packages: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) nodes: Option<Spanned<UniformToml>>,
    #[serde(default)]
    pub(super) node: Vec<Spanned<NodeToml>>,
    #[serde(default)]
    pub(super) cache: Vec<CacheToml>,
}

/// How the threads of a core are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Threads {
    /// First all first threads, then all second ones, as on x86.
    Spread,
    /// The threads of a core one after another, as on POWER.
    Adjacent,
}

/// `[nodes]`: uniform nodes with ids from 0.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UniformToml {
    pub(super) count: Spanned<u32>,
    pub(super) memory: Spanned<String>,
    pub(super) cores: Option<Spanned<u32>>,
    pub(super) smt: Option<Spanned<u32>>,
    pub(super) nodes_per_package: Option<Spanned<u32>>,
    pub(super) channels: Option<u32>,
    pub(super) mts: Option<u32>,
}

/// `[[node]]`: one node.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeToml {
    pub(super) id: Spanned<u32>,
    pub(super) memory: Option<Spanned<String>>,
    pub(super) ranges: Option<Spanned<Vec<Spanned<Vec<String>>>>>,
    pub(super) cpus: Option<Spanned<String>>,
    pub(super) cores: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) smt: Option<Spanned<u32>>,
    pub(super) channels: Option<u32>,
    pub(super) mts: Option<u32>,
}

/// `[[cache]]`: one cache of the first CPU.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CacheToml {
    pub(super) level: u32,
    pub(super) size: Spanned<String>,
    pub(super) line: Option<u32>,
    pub(super) shared_by: u32,
}
