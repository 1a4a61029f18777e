//! Teams of workers that take chunks in virtual time.
//!
//! A [`Team`] is a node's workers with its queue of chunks, as padata hands them out.
//! [`run`] advances all teams event by event: deterministic, and linear in chunks. The
//! real counterpart takes the same chunks from a queue under a clock.

use super::queue::Curve;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// One padata job: workers that share a queue of chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// How many workers.
    pub workers: u32,
    /// Pages to do in each chunk, in the order in which they are handed out.
    pub chunks: Vec<u64>,
}

/// One node's workers and what they have to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Team {
    /// The jobs, one after another: the next begins when the last worker is done.
    pub jobs: Vec<Job>,
    /// One page on one otherwise idle worker, in ps: whole numbers, so that sums agree
    /// whatever their order.
    pub page_ps: u64,
    /// How workers slow each other down.
    pub curve: Arc<Curve>,
    /// Added once at the end, in ns, as far as the team stays as fast as one worker.
    pub settle_ns: f64,
    /// Whether it uses the station that teams share.
    pub shares: bool,
}

/// What one worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkerTime {
    /// When it took its first chunk, in ns.
    pub start_ns: f64,
    /// When it finished its last, in ns.
    pub end_ns: f64,
    /// Pages done.
    pub pages: u64,
    /// Chunks done.
    pub chunks: u64,
}

/// What one team took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TeamTime {
    /// From the start to the last worker's end, settling included, in ns.
    pub end_ns: f64,
    /// How much of it is settling, in ns.
    pub settle_ns: f64,
    /// Its workers by number; the same ones do every job.
    pub workers: Vec<WorkerTime>,
}

/// A team that is running.
struct Running<'t> {
    team: &'t Team,
    job: usize,
    next_chunk: usize,
    /// Work that each worker has attained since the job began, in ps.
    attained_ps: u64,
    /// Busy workers by the attained work at which their chunk ends.
    busy: BinaryHeap<Reverse<(u64, u32, u64)>>,
    out: TeamTime,
}

/// Runs all teams from time 0. With `shared`, workers of teams that share also slow
/// each other down by that curve, over all of them together.
pub fn run(teams: &[Team], shared: Option<&Curve>) -> Vec<TeamTime> {
    match shared {
        Some(curve) => run_together(teams, curve),
        None => run_apart(teams),
    }
}

/// Teams that do not meet. Equal ones take equal times, so each kind runs once.
fn run_apart(teams: &[Team]) -> Vec<TeamTime> {
    let mut known: Vec<(&Team, TeamTime)> = Vec::new();
    let mut out = Vec::with_capacity(teams.len());
    for team in teams {
        let found = known.iter().find(|(other, _)| other.is_like(team));
        let time = found.map_or_else(|| run_alone(team), |(_, time)| time.clone());
        if found.is_none() {
            known.push((team, time.clone()));
        }
        out.push(time);
    }
    out
}

impl Team {
    /// What one worker would take for all of it, in ns.
    fn alone_ns(&self) -> f64 {
        let pages: u64 = self.jobs.iter().flat_map(|j| &j.chunks).sum();
        pages as f64 * self.page_ps as f64 / 1000.0
    }

    /// Whether both take the same time for sure.
    fn is_like(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.curve, &other.curve)
            && (self.page_ps, self.settle_ns) == (other.page_ps, other.settle_ns)
            && self.jobs == other.jobs
    }
}

fn run_alone(team: &Team) -> TeamTime {
    let mut running = Running::new(team);
    let mut now_ns = 0.0;
    while let Some(end_ps) = running.next_end_ps() {
        now_ns += running.wait_ns(end_ps, running.own_speed());
        running.advance(end_ps, now_ns);
    }
    running.finish(now_ns)
}

fn run_together(teams: &[Team], shared: &Curve) -> Vec<TeamTime> {
    let mut running: Vec<Running<'_>> = teams.iter().map(Running::new).collect();
    let mut ends_ns = vec![0.0; teams.len()];
    let mut now_ns = 0.0;
    loop {
        let sharing = running.iter().filter(|r| r.team.shares).map(Running::busy_workers).sum();
        let speed_of = |r: &Running<'_>| match r.team.shares {
            // Waiting adds up: for the node's own stations and for the shared one.
            true => 1.0 / (1.0 / r.own_speed() + 1.0 / shared.speed(sharing) - 1.0),
            false => r.own_speed(),
        };
        let waits = running.iter().enumerate().filter_map(|(index, r)| {
            let speed = speed_of(r);
            r.next_end_ps().map(|end_ps| (r.wait_ns(end_ps, speed), index, end_ps))
        });
        let Some((wait_ns, index, end_ps)) = waits.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            break;
        };
        let attained: Vec<u64> =
            running.iter().map(|r| r.attained_after(wait_ns, speed_of(r))).collect();
        now_ns += wait_ns;
        for (r, attained_ps) in running.iter_mut().zip(attained) {
            r.attained_ps = attained_ps;
        }
        running[index].advance(end_ps, now_ns);
        ends_ns[index] = now_ns;
    }
    running.into_iter().zip(ends_ns).map(|(r, end_ns)| r.finish(end_ns)).collect()
}

impl<'t> Running<'t> {
    fn new(team: &'t Team) -> Self {
        let most = team.jobs.iter().map(|j| j.workers).max().unwrap_or(0);
        let workers = vec![WorkerTime { start_ns: -1.0, ..WorkerTime::default() }; most as usize];
        let out = TeamTime { workers, ..TeamTime::default() };
        let mut running =
            Self { team, job: 0, next_chunk: 0, attained_ps: 0, busy: BinaryHeap::new(), out };
        running.begin_job(0.0);
        running
    }

    /// Gives the workers of the current job their first chunks; skips empty jobs.
    fn begin_job(&mut self, now_ns: f64) {
        while let Some(job) = self.team.jobs.get(self.job) {
            (self.next_chunk, self.attained_ps) = (0, 0);
            for worker in 0..job.workers {
                self.take(worker, now_ns);
            }
            if !self.busy.is_empty() {
                return;
            }
            self.job += 1;
        }
    }

    fn take(&mut self, worker: u32, now_ns: f64) {
        let Some(job) = self.team.jobs.get(self.job) else { return };
        let Some(&pages) = job.chunks.get(self.next_chunk) else { return };
        self.next_chunk += 1;
        let work_ps = pages.saturating_mul(self.team.page_ps);
        self.busy.push(Reverse((self.attained_ps.saturating_add(work_ps), worker, pages)));
        let time = self.out.workers.get_mut(worker as usize);
        if let Some(time) = time.filter(|t| t.start_ns < 0.0) {
            time.start_ns = now_ns;
        }
    }

    fn busy_workers(&self) -> u32 {
        u32::try_from(self.busy.len()).unwrap_or(u32::MAX)
    }

    fn own_speed(&self) -> f64 {
        self.team.curve.speed(self.busy_workers())
    }

    fn next_end_ps(&self) -> Option<u64> {
        self.busy.peek().map(|Reverse((end_ps, _, _))| *end_ps)
    }

    fn wait_ns(&self, end_ps: u64, speed: f64) -> f64 {
        end_ps.saturating_sub(self.attained_ps) as f64 / 1000.0 / speed
    }

    /// The attained work after a wait that ends no later than the next chunk.
    fn attained_after(&self, wait_ns: f64, speed: f64) -> u64 {
        let after = self.attained_ps.saturating_add((wait_ns * speed * 1000.0).round() as u64);
        self.next_end_ps().map_or(self.attained_ps, |end| after.min(end))
    }

    /// Ends the chunk that is due, and hands out the next one.
    fn advance(&mut self, end_ps: u64, now_ns: f64) {
        self.attained_ps = end_ps;
        let Some(Reverse((_, worker, pages))) = self.busy.pop() else { return };
        if let Some(time) = self.out.workers.get_mut(worker as usize) {
            time.end_ns = now_ns;
            time.pages += pages;
            time.chunks += 1;
        }
        self.take(worker, now_ns);
        if self.busy.is_empty() {
            self.job += 1;
            self.begin_job(now_ns);
        }
    }

    fn finish(mut self, now_ns: f64) -> TeamTime {
        // Workers that all share one CPU are one worker: nothing is slower than that.
        let slack_ns = (self.team.alone_ns() - now_ns).max(0.0);
        self.out.settle_ns = self.team.settle_ns.min(slack_ns);
        self.out.end_ns = now_ns + self.out.settle_ns;
        self.out.workers.retain(|w| w.start_ns >= 0.0);
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::Demand;
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn curve(alone_ns: f64, bandwidth_ns: f64, workers: u32) -> Arc<Curve> {
        let demand = Demand { alone_ns, bandwidth_ns, lock_ns: 0.0 };
        Arc::new(Curve::new(demand, workers, workers, 0.4))
    }

    fn team(workers: u32, chunks: &[u64], page_ns: u64, bandwidth_ns: f64) -> Team {
        Team {
            jobs: vec![Job { workers, chunks: chunks.to_vec() }],
            page_ps: page_ns * 1000,
            curve: curve(page_ns as f64, bandwidth_ns, workers),
            settle_ns: 0.0,
            shares: false,
        }
    }

    /// The executor's way: every worker pops a chunk from a queue when it is free. Time
    /// is not measured but follows from the same costs; nothing is kept but what each
    /// worker has left to do.
    fn fake_executor(team: &Team) -> f64 {
        let mut now_ns = 0.0;
        for job in &team.jobs {
            let mut queue: VecDeque<u64> = job.chunks.iter().copied().collect();
            let mut left_ps: Vec<Option<u64>> = (0..job.workers)
                .map(|_| queue.pop_front().map(|pages| pages * team.page_ps))
                .collect();
            while let Some(next) = left_ps.iter().flatten().min().copied() {
                let busy = left_ps.iter().flatten().count() as u32;
                let ended = left_ps.iter().position(|l| *l == Some(next)).unwrap();
                now_ns += next as f64 / 1000.0 / team.curve.speed(busy);
                for left in left_ps.iter_mut().flatten() {
                    *left -= next;
                }
                left_ps[ended] = queue.pop_front().map(|pages| pages * team.page_ps);
            }
        }
        now_ns
    }

    // worker 0 [ 4 chunks' time ===][= 1 =]
    // worker 1 [= 1 =][= 1 =][= 1 =][= 1 =]      time →
    #[test]
    fn free_workers_take_the_next_chunk() {
        let team = team(2, &[40, 10, 10, 10, 10, 10], 10, 0.0);
        let time = &run(std::slice::from_ref(&team), None)[0];
        assert_eq!(time.end_ns, 500.0);
        assert_eq!((time.workers[0].chunks, time.workers[1].chunks), (2, 4));
        assert_eq!(time.workers.iter().map(|w| w.pages).sum::<u64>(), 90);
    }

    #[test]
    fn bandwidth_bounds_a_team() {
        let alone = team(1, &[100; 8], 10, 4.0);
        let eight = team(8, &[100; 8], 10, 4.0);
        let ends = run(&[alone, eight], None);
        assert_eq!(ends[0].end_ns, 8000.0);
        assert!(ends[1].end_ns > 800.0 * 4.0 * 0.99 && ends[1].end_ns < 8000.0 / 2.0);
    }

    // Two equal nodes behind one station: each half as fast, until the smaller is done.
    #[test]
    fn nodes_behind_controllers_share_and_speed_up_when_others_end() {
        let shared = Curve::new(
            Demand { alone_ns: 10.0, bandwidth_ns: 10.0, lock_ns: 0.0 },
            2,
            u32::MAX,
            0.0,
        );
        let small = Team { shares: true, ..team(1, &[100], 10, 0.0) };
        let large = Team { shares: true, ..team(1, &[300], 10, 0.0) };
        let ends = run(&[small, large], Some(&shared));
        assert_eq!((ends[0].end_ns, ends[1].end_ns), (2000.0, 4000.0));
    }

    #[test]
    fn jobs_of_a_node_follow_each_other() {
        let mut two = team(4, &[10], 10, 0.0);
        two.jobs.push(Job { workers: 1, chunks: vec![] });
        two.jobs.push(Job { workers: 2, chunks: vec![10, 10, 10] });
        assert_eq!(run(&[two], None)[0].end_ns, 100.0 + 200.0);
    }

    #[test]
    fn equal_teams_are_run_once_and_unequal_ones_apart() {
        let one = team(3, &[50, 60, 70, 80], 7, 2.0);
        let other = Team { settle_ns: 5.0, ..one.clone() };
        let ends = run(&[one.clone(), other, one.clone()], None);
        assert_eq!(ends[0], run_alone(&one));
        assert_eq!((ends[2].end_ns, ends[1].end_ns), (ends[0].end_ns, ends[0].end_ns + 5.0));
    }

    #[test]
    fn settling_makes_nobody_slower_than_one_worker() {
        let alone_ns = run(&[team(1, &[100, 100], 10, 0.0)], None)[0].end_ns;
        let two = Team { settle_ns: 1e9, ..team(2, &[100, 100], 10, 0.0) };
        let time = &run(&[two], None)[0];
        assert_eq!((time.end_ns, time.settle_ns), (alone_ns, alone_ns / 2.0));
    }

    proptest! {
        #[test]
        fn virtual_and_fake_executor_agree_exactly(
            workers in 1u32..9, chunks in prop::collection::vec(1u64..5000, 0..60),
            page_ns in 1u64..40, share in 0.0f64..1.0,
        ) {
            let team = team(workers, &chunks, page_ns, share * page_ns as f64);
            let virtual_ns = run(std::slice::from_ref(&team), None)[0].end_ns;
            prop_assert_eq!(virtual_ns, fake_executor(&team));
        }

        #[test]
        fn the_same_teams_take_the_same_time(chunks in prop::collection::vec(1u64..99, 1..40)) {
            let teams = [team(3, &chunks, 7, 2.0), team(5, &chunks, 7, 2.0)];
            prop_assert_eq!(run(&teams, None), run(&teams, None));
        }
    }
}
