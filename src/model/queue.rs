//! A node's workers as a closed queueing network: think time and two stations.
//!
//! A worker computes for a while, then needs the node's memory bandwidth and, for a
//! freed block, the zone's lock. [`Curve`] holds the throughput for every number of
//! workers by exact mean value analysis, and with it how much each one is slowed.

/// What one page asks of each station, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// One page on one otherwise idle worker.
    pub alone_ns: f64,
    /// Its share of the node's memory bandwidth.
    pub bandwidth_ns: f64,
    /// Its share of the zone's lock.
    pub lock_ns: f64,
}

/// How fast each of `k` workers is, compared with one alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    demand: Demand,
    /// Pages per ns with 0, 1, 2, … customers.
    throughput: Vec<f64>,
    /// Physical cores of the node.
    cores: f64,
    /// What a further hardware thread of a busy core adds, in cores.
    smt_gain: f64,
    /// The speed of each of 0, 1, 2, … workers: asked for at every chunk.
    speeds: Vec<f64>,
}

impl Curve {
    /// The curve for up to `workers` on `cores` cores.
    pub fn new(demand: Demand, workers: u32, cores: u32, smt_gain: f64) -> Self {
        let (bandwidth, lock) = (demand.bandwidth_ns.max(0.0), demand.lock_ns.max(0.0));
        let think = (demand.alone_ns - bandwidth - lock).max(0.0);
        let mut throughput = vec![0.0];
        let (mut at_bandwidth, mut at_lock) = (0.0, 0.0);
        // One more than the cores that can be in use, for interpolation.
        for customers in 1..=workers.max(1).saturating_add(1) {
            let in_bandwidth = bandwidth * (1.0 + at_bandwidth);
            let in_lock = lock * (1.0 + at_lock);
            let round = (think + in_bandwidth + in_lock).max(f64::MIN_POSITIVE);
            let rate = f64::from(customers) / round;
            (at_bandwidth, at_lock) = (rate * in_bandwidth, rate * in_lock);
            throughput.push(rate);
        }
        let cores = f64::from(cores.max(1));
        let mut curve = Self { demand, throughput, cores, smt_gain, speeds: Vec::new() };
        curve.speeds = (0..=workers.max(1)).map(|w| curve.compute_speed(w)).collect();
        curve
    }

    /// Pages per ns of all `workers` together.
    pub fn throughput(&self, workers: u32) -> f64 {
        let workers = f64::from(workers);
        let effective = workers.min(self.cores) + self.smt_gain * (workers - self.cores).max(0.0);
        let whole = effective.floor();
        let at = |index: f64| {
            let last = self.throughput.len() - 1;
            self.throughput.get(index as usize).or(self.throughput.get(last)).copied()
        };
        let (low, high) = (at(whole).unwrap_or(0.0), at(whole + 1.0).unwrap_or(0.0));
        low + (high - low) * (effective - whole)
    }

    /// The speed of each of `workers`, 1 for one alone.
    pub fn speed(&self, workers: u32) -> f64 {
        let known = self.speeds.get(workers as usize);
        known.copied().unwrap_or_else(|| self.compute_speed(workers))
    }

    fn compute_speed(&self, workers: u32) -> f64 {
        if workers == 0 || self.throughput(1) <= 0.0 {
            return 1.0;
        }
        self.throughput(workers) / f64::from(workers) / self.throughput(1)
    }

    /// The busy share of the memory bandwidth and of the zone's lock.
    pub fn utilisation(&self, workers: u32) -> (f64, f64) {
        let rate = self.throughput(workers);
        (rate * self.demand.bandwidth_ns, rate * self.demand.lock_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKYLAKE: Demand = Demand { alone_ns: 17.3, bandwidth_ns: 1.41, lock_ns: 0.98 };

    #[test]
    fn one_worker_takes_its_time_and_many_take_the_bandwidth() {
        let curve = Curve::new(SKYLAKE, 52, 26, 0.4);
        assert!((1.0 / curve.throughput(1) - 17.3).abs() < 1e-9);
        assert_eq!(curve.speed(1), 1.0);
        let (bandwidth, lock) = curve.utilisation(52);
        assert!(bandwidth > 0.97 && bandwidth <= 1.0 && lock < 0.75, "{bandwidth} {lock}");
    }

    #[test]
    fn more_workers_never_make_a_node_slower() {
        let curve = Curve::new(SKYLAKE, 52, 26, 0.4);
        for workers in 1..52 {
            assert!(curve.throughput(workers + 1) >= curve.throughput(workers), "{workers}");
        }
    }

    // Without shared stations, two cores with one thread each are twice as fast and two
    // more hardware threads add 0.4 cores each.
    #[test]
    fn without_stations_only_cores_count() {
        let free = Demand { alone_ns: 10.0, bandwidth_ns: 0.0, lock_ns: 0.0 };
        let curve = Curve::new(free, 4, 2, 0.4);
        assert!((curve.throughput(2) - 0.2).abs() < 1e-12);
        assert!((curve.throughput(4) - 0.28).abs() < 1e-12);
    }
}
