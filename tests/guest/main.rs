//! `pageinit` on real kernels with many NUMA nodes, booted in an emulator.
//!
//! Run by `scripts/guest-tests.sh`; ignored otherwise, because every test boots a guest
//! of its own and needs the emulator, a kernel and a release build. What the kernel was
//! told to be is held against what `machine` shows and what `compare` did.

mod check;
mod vm;

use check::{check_compare, check_layout, check_machine, check_samples, warned};
use serde_json::Value;
use vm::Topology;

const MACHINE: (&str, &str) = ("machine", "pageinit machine --json");
const COMPARE: (&str, &str) = ("compare", "pageinit compare --buffer 16MiB --runs 2 --json");

/// Runs comparisons and notes meanwhile where the kernel says that their memory lies and
/// which CPUs their workers may use. Workers live for moments, and a shell in an emulator
/// looks rarely: it goes on until two workers were seen where they are pinned, a dozen
/// comparisons at most.
const SAMPLED: (&str, &str) = (
    "sampled",
    "for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
         pageinit compare --buffer 16MiB --runs 8 --strategies deferred,fused-nt >/dev/null &
         pid=$!
         while [ -e /proc/$pid/numa_maps ] && ! grep -q '^State:.*Z' /proc/$pid/status; do
             grep 'bind:' /proc/$pid/numa_maps
             for task in /proc/$pid/task/*; do
                 read -r comm <$task/comm && case $comm in pageinit-*)
                     echo \"$comm $(grep Cpus_allowed_list $task/status)\" | tee -a /tmp/workers;;
                 esac
             done
         done 2>/dev/null
         wait $pid || exit
         sed -n 's/^pageinit-\\([0-9]*\\) .*[[:space:]]\\1$/\\1/p' /tmp/workers >/tmp/pinned
         [ $(sort -u /tmp/pinned | wc -l) -lt 2 ] || break
     done",
);

#[test]
#[ignore = "boots a guest: scripts/guest-tests.sh"]
fn two_nodes_are_seen_bound_and_pinned() {
    let guest = Topology { nodes: &[(1024, 2), (1024, 2)], distances: &[] };
    let steps = guest.run_with(
        "memblock=debug log_buf_len=4M",
        &[
            ("log", "dmesg"),
            ("layout", "dmesg >/tmp/log && pageinit layout -m /tmp/log --json"),
            ("hwloc", "ls /lib/*/libhwloc* /usr/lib/*/libhwloc* | wc -l"),
            MACHINE,
            COMPARE,
            SAMPLED,
            (
                "foreign",
                "pageinit compare -m 'pack:3 [numa(memory=1GiB)] core:2 pu:1' \
                     --buffer 16MiB --runs 1 --json",
            ),
            ("threads", "pageinit compare --buffer 16MiB --runs 1 --threads 3"),
        ],
    );
    // The file for large machines brings its own hwloc.
    if std::env::var("PAGEINIT_BINARY").is_ok_and(|b| b.contains("portable")) {
        assert_eq!(steps["hwloc"].stdout.trim(), "0");
    }
    check_layout(&steps["log"].stdout, &steps["layout"].json());
    check_machine(&guest, &steps["machine"].json());
    let record = steps["compare"].record();
    check_compare(&guest, &record);
    assert!(!warned(&record, "node-served-by-another"));
    check_samples(&guest, &steps["sampled"]);
    let foreign = steps["foreign"].record();
    let turns: Vec<_> =
        foreign.execution.mapping.iter().map(|m| (m.nid, m.host_nid, m.round)).collect();
    assert_eq!(turns, [(0, 0, 0), (1, 1, 0), (2, 0, 1)]);
    check::placed(&foreign);
    check::ran_where_pinned(&foreign);
    steps["threads"].expect_error(2, &["--threads 3 is more than the 2 CPUs"]);
}

/// ```text
///   node       0     1     2     3
///   memory    1G    1G   64M   512M
///   CPUs      0 1   2 3    4     -     node 1 is the nearest to node 3
/// ```
#[test]
#[ignore = "boots a guest: scripts/guest-tests.sh"]
fn four_nodes_one_tiny_one_without_cpus() {
    let guest = Topology {
        nodes: &[(1024, 2), (1024, 2), (64, 1), (512, 0)],
        distances: &[&[10, 20, 30, 30], &[20, 10, 30, 15], &[30, 30, 10, 25], &[30, 15, 25, 10]],
    };
    let steps = guest.run(&[
        MACHINE,
        COMPARE,
        SAMPLED,
        (
            "threads",
            "pageinit compare --strategies deferred --buffer 16MiB --runs 1 --threads 1 \
                     --json",
        ),
    ]);
    check_machine(&guest, &steps["machine"].json());
    let record = steps["compare"].record();
    check_compare(&guest, &record);
    let served = record.execution.mapping.iter().find(|m| m.nid == 3).expect("node 3");
    // One worker, as the kernel has, on the last CPU of the nearest node.
    assert_eq!((served.cpus.as_slice(), served.ran_on.as_slice()), (&[3][..], &[3][..]));
    let said = record.head.warnings.iter().find(|w| w.code == "node-served-by-another");
    let said = said.expect("a warning").message.as_str();
    assert_eq!(said, "node 3 has no CPU: one worker on CPU 3 of node 1 serves it (distance 15)");
    check_samples(&guest, &steps["sampled"]);
    check::placed(&steps["threads"].record());
}

#[test]
#[ignore = "boots a guest: scripts/guest-tests.sh"]
fn eight_nodes_on_a_ring() {
    const ROWS: [[u32; 8]; 8] = {
        let mut rows = [[0; 8]; 8];
        let mut i = 0;
        while i < 64 {
            let steps = (i / 8 + 8 - i % 8) % 8;
            let steps = if steps > 4 { 8 - steps } else { steps };
            rows[i / 8][i % 8] = 10 + 4 * steps as u32;
            i += 1;
        }
        rows
    };
    const DISTANCES: [&[u32]; 8] =
        [&ROWS[0], &ROWS[1], &ROWS[2], &ROWS[3], &ROWS[4], &ROWS[5], &ROWS[6], &ROWS[7]];
    let guest = Topology { nodes: &[(512, 1); 8], distances: &DISTANCES };
    let steps = guest.run(&[MACHINE, COMPARE, SAMPLED]);
    check_machine(&guest, &steps["machine"].json());
    check_compare(&guest, &steps["compare"].record());
    check_samples(&guest, &steps["sampled"]);
}

/// Affinity, cpusets and offline CPUs: nothing may run or lie where it is not allowed.
#[test]
#[ignore = "boots a guest: scripts/guest-tests.sh"]
fn limits_of_this_process_are_kept() {
    let guest = Topology { nodes: &[(768, 2), (768, 3)], distances: &[] };
    let compare = "pageinit compare --buffer 16MiB --runs 1 --json";
    let in_cpuset = |files: &str| {
        format!(
            "cd /sys/fs/cgroup && echo +cpuset >cgroup.subtree_control && mkdir -p limit && \
             echo 0-4 >limit/cpuset.cpus && echo 0-1 >limit/cpuset.mems && {files} && \
             sh -c 'echo $$ >limit/cgroup.procs && exec {compare}'"
        )
    };
    let steps = guest.run(&[
        ("affinity", &format!("taskset 0x16 {compare}")),
        ("one-node", &format!("taskset 0x8 {compare}")),
        ("cpuset", &in_cpuset("echo 0,3-4 >limit/cpuset.cpus")),
        ("mems", &in_cpuset("echo 0 >limit/cpuset.mems")),
        ("offline", &format!("echo 0 >/sys/devices/system/cpu/cpu3/online && {compare}")),
        ("offline-machine", "pageinit machine --json"),
        (
            "offline-node",
            &format!(
                "echo 0 >/sys/devices/system/cpu/cpu1/online && \
                                   taskset 0x1e {compare}"
            ),
        ),
    ]);
    let cpus = |step: &str| {
        let record = steps[step].record();
        check::placed(&record);
        check::ran_where_pinned(&record);
        record.execution.mapping.into_iter().map(|m| m.cpus).collect::<Vec<_>>()
    };
    assert_eq!(cpus("affinity"), [vec![1], vec![2, 4]]);
    assert_eq!(cpus("one-node"), [vec![3], vec![3]]);
    let served = steps["one-node"].record();
    let said = served.head.warnings.iter().find(|w| w.code == "node-served-by-another");
    assert!(said.is_some_and(|w| w.message.starts_with("node 0 has no CPU that may be used")));
    assert_eq!(cpus("cpuset"), [vec![0], vec![3, 4]]);
    steps["mems"].expect_error(6, &["may not use the memory of NUMA node 1", "cpuset.mems"]);
    assert_eq!(cpus("offline"), [vec![0, 1], vec![2, 4]]);
    let machine = steps["offline-machine"].json();
    assert_eq!(machine["limits"]["online_cpus"], serde_json::json!([0, 1, 2, 4]));
    let ids: Vec<_> = machine["cpus"].as_array().unwrap().iter().map(|c| &c["id"]).collect();
    assert_eq!(ids, [0, 1, 2, 4]);
    // CPU 0 is not allowed and CPU 1 is off: node 0 has none.
    assert_eq!(cpus("offline-node"), [vec![4], vec![2, 4]]);
}

/// A node is filled up step by step. The run must succeed or say which node is too small;
/// it must never be ended by the kernel. And a node without memory lends its CPUs to none.
#[test]
#[ignore = "boots a guest: scripts/guest-tests.sh"]
fn a_node_that_is_too_small_is_an_error() {
    let guest = Topology { nodes: &[(1024, 1), (256, 1), (0, 1)], distances: &[] };
    let fill = "mkdir /tmp/full && mount -t tmpfs -o size=100%,mpol=bind:1 full /tmp/full
         free() {
             awk '/MemFree/ { print int($4 / 1024) }' /sys/devices/system/node/node1/meminfo
         }
         dd if=/dev/zero of=/tmp/full/0 bs=1M count=$(($(free) - 60)) 2>/dev/null
         refused=0; i=0
         while [ $refused -lt 3 ] && [ $i -lt 30 ]; do
             before=$(free)
             pageinit compare --strategies deferred --buffer 48MiB --runs 1 >/dev/null 2>/tmp/say
             s=$?
             echo $before $s $(grep error /tmp/say)
             [ $s != 6 ] || refused=$((refused + 1))
             i=$((i + 1))
             dd if=/dev/zero of=/tmp/full/$i bs=1M count=3 2>/dev/null
         done";
    let foreign = "pageinit compare -m 'pack:3 [numa(memory=1GiB)] core:1 pu:1' \
                   --strategies deferred --buffer 16MiB --runs 1 --json";
    let steps = guest.run(&[("foreign", foreign), MACHINE, COMPARE, ("fill", fill)]);
    let hosts: Vec<_> =
        steps["foreign"].record().execution.mapping.iter().map(|m| m.host_nid).collect();
    assert_eq!(hosts, [0, 1, 0]);
    check_machine(&guest, &steps["machine"].json());
    check_compare(&guest, &steps["compare"].record());
    let lines: Vec<&str> = steps["fill"].stdout.lines().collect();
    let with = |status: &str| lines.iter().filter(|l| l.split(' ').nth(1) == Some(status)).count();
    assert_eq!(with("0") + with("6"), lines.len(), "{lines:#?}");
    assert!(with("0") > 0 && with("6") > 0, "{lines:#?}");
    let refused = lines.iter().filter(|l| l.split(' ').nth(1) == Some("6"));
    refused.for_each(|l| assert!(l.contains("node 1"), "{l}"));
}

/// `lab clear-huge` takes a gigantic page of the pool, gives it back, and takes none that
/// lies on another node than the one that it measures.
#[test]
#[ignore = "boots a guest: scripts/guest-tests.sh"]
fn gigantic_pages_of_the_pool_are_cleared_where_they_are_near() {
    let guest = Topology { nodes: &[(512, 1), (2560, 1)], distances: &[] };
    let clear = "pageinit lab clear-huge --stores libc-memset --runs 1 --buffer 2MiB \
                 --touch 2MiB --no-settings --json";
    let free = "cat /sys/devices/system/node/node1/hugepages/hugepages-1048576kB/free_hugepages";
    let steps = guest.run_with(
        "hugepagesz=1G hugepages=1",
        &[
            ("near", &format!("taskset 2 {clear}")),
            ("free", free),
            ("far", &format!("taskset 1 {clear}")),
        ],
    );
    let near = steps["near"].json();
    assert_eq!(near["settings"]["gigantic_backing"], "hugetlb-1gib");
    let of_gigantic = |point: &&Value| point["part"] == "gigantic";
    assert!(near["points"].as_array().expect("points").iter().filter(of_gigantic).count() > 0);
    assert_eq!(steps["free"].stdout, "1\n");
    // Node 0 has not so much memory, which must not end in the OOM killer either.
    let far = steps["far"].json();
    assert_eq!(far["settings"]["gigantic_backing"], Value::Null);
    let said = far["warnings"].as_array().expect("warnings");
    assert!(said.iter().any(|warning| warning["code"] == "no-gigantic"), "{said:?}");
}
