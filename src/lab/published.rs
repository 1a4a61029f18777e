//! Figures of the discussions, typed in with their source.
//!
//! Never mixed with figures of this host: records keep them in a list of their own.

use crate::record::lab::{Factor, Factors, Published, factors};

const US: f64 = 1e3;
const MS: f64 = 1e6;

/// A figure with mean, deviation and count.
fn figure(
    (part, platform, source): (&str, &str, &str),
    factors: Factors,
    (mean_ns, sd_ns, samples): (f64, Option<f64>, Option<u64>),
) -> Published {
    let (part, platform, source) = (part.into(), platform.into(), source.into());
    Published { part, factors, platform, mean_ns, sd_ns, samples, source }
}

/// Node 0 of a 32 TiB SPARC, before and after zeroing moved into the threads.
pub fn zeroing() -> Vec<Published> {
    const PAGES: f64 = 128_312_523.0;
    let of = ("node", "SPARC, 32 TiB, node 0, one thread", "linux-mm, March 2017, P. Tatashin");
    let one = |ms: f64, zeroed: &str| {
        let factors = factors([("zeroed", Factor::from(zeroed)), ("threads", 1.into())]);
        figure(of, factors, (ms * MS / PAGES, None, Some(1)))
    };
    vec![one(7200.0, "before, by the boot CPU"), one(4190.0, "in the loop that fills")]
}

/// Mean and deviation in µs of one-shot, forward and reverse on arm64, then on x86-64.
type TableRow = (u64, [(f64, f64); 6]);

/// 100 samples each; the buffer's size is not given.
const TABLE: [TableRow; 5] = [
    (
        4,
        [
            (3402.06, 72.6576),
            (3408.04, 72.976),
            (17699.3, 132.875),
            (6752.59, 298.988),
            (6873.6, 325.607),
            (6722.88, 365.837),
        ],
    ),
    (
        8,
        [
            (3398.64, 80.6334),
            (3391.58, 65.9063),
            (13909.2, 194.324),
            (6848.57, 955.312),
            (7012.24, 1377.27),
            (6688.83, 589.935),
        ],
    ),
    (
        16,
        [
            (3393.57, 72.2485),
            (3404.69, 84.4705),
            (9278.65, 217.725),
            (6846.87, 546.173),
            (6785.26, 248.022),
            (6613.33, 350.003),
        ],
    ),
    (
        32,
        [
            (3425.7, 129.156),
            (3402.07, 82.6713),
            (6831.43, 184.807),
            (6862.19, 870.524),
            (6826.3, 870.023),
            (6747.69, 1047.5),
        ],
    ),
    (
        64,
        [
            (3398.72, 77.9703),
            (3413.52, 173.121),
            (5542.84, 197.017),
            (6806.9, 609.112),
            (6774.53, 311.954),
            (6553.47, 293.52),
        ],
    ),
];

/// Clearing in chunks and directions, one page with and without the pair, and 100 MB.
pub fn clearing() -> Vec<Published> {
    let mut out = Vec::new();
    for (kib, row) in TABLE {
        for (at, (mean_us, sd_us)) in row.into_iter().enumerate() {
            let arch = if at < 3 { "arm64" } else { "x86-64" };
            let direction = ["one-shot", "forward", "reverse"][at % 3];
            let of = ("table", arch, "linux-mm, April 2020, P. Baronia");
            let factors = factors([
                ("chunk_bytes", (kib << 10).into()),
                ("direction", direction.into()),
                ("arch", arch.into()),
            ]);
            out.push(figure(of, factors, (mean_us * US, Some(sd_us * US), Some(100))));
        }
    }
    out.extend(pairs());
    out
}

fn pairs() -> [Published; 4] {
    const PLATFORM: &str = "Qualcomm SM7250, Linux 4.19.113";
    const SOURCE: &str = "linux-mm, 2020-21, P. Baronia";
    let one = |part, pair: &str, mean_us: f64, sd_us: f64, samples| {
        let factors = factors([("pair", Factor::from(pair))]);
        let figures = (mean_us * US, Some(sd_us * US), Some(samples));
        figure((part, PLATFORM, SOURCE), factors, figures)
    };
    [
        one("page", "with", 349.5, 74.5, 48),
        one("page", "without", 131.0, 32.7, 48),
        one("touch", "with", 31_831.0, 4286.0, 100),
        one("touch", "without", 18_193.0, 4915.0, 100),
    ]
}

/// Moving 1 GiB that is aligned to 2 MiB, before and after.
pub fn moving() -> Vec<Published> {
    let of = ("moves", "arm64, 1 GiB", "linux-mm, October 2020, K. Singh");
    let one = |level: &str, ns: f64| {
        let factors = factors([("size_bytes", (1 << 30).into()), ("used", Factor::from(level))]);
        figure(of, factors, (ns, None, Some(10)))
    };
    vec![one("pte", 9_100_885.0), one("pmd", 1_134_313.0)]
}

/// The loop over 1 GiB before and after the patch, three runs each.
pub fn scanning() -> Vec<Published> {
    let of = ("live", "arm64, 1 GiB", "linux-mm, September 2024, D. Jain, R. Roberts, B. Song");
    let one = |algorithm: &str, ms: f64| {
        let factors = factors([("algorithm", Factor::from(algorithm))]);
        figure(of, factors, (ms * MS, None, Some(3)))
    };
    vec![one("every-range", 70.0), one("first-set", 74.0)]
}
