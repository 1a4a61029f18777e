//! Every available store against a naive oracle, between guard lines.

use super::*;
use proptest::prelude::*;

/// Around the unrolling, a page of lines and a staging block.
pub(super) const LENGTHS: [usize; 14] = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 1024];

const GUARD: Line = Line::new([0xa5a5_a5a5_a5a5_a5a5; 8]);

/// Line `i` is `first + i * step`, by a multiplication instead of a running sum.
pub(super) fn oracle_images(length: usize, first: &[u64; 8], step: &[u64; 8]) -> Vec<Line> {
    let word = |i: usize, w: usize| first[w].wrapping_add(step[w].wrapping_mul(i as u64));
    (0..length).map(|i| Line::new(std::array::from_fn(|w| word(i, w)))).collect()
}

/// Runs `fill` between guards and compares.
///
/// ```text
///   guard guard | line 0 … line n-1 | guard guard
///               ^ fill sees only this
/// ```
fn check(what: &str, expected: &[Line], fill: impl Fn(&mut [Line])) {
    let mut memory = vec![GUARD; expected.len() + 4];
    let end = memory.len() - 2;
    fill(&mut memory[2..end]);
    assert!(memory[..2].iter().all(|&line| line == GUARD), "{what} wrote before its range");
    assert!(memory[end..].iter().all(|&line| line == GUARD), "{what} wrote after its range");
    assert_eq!(&memory[2..end], expected, "{what}");
}

fn check_images(first: [u64; 8], step: [u64; 8], lengths: &[usize]) {
    for store in Store::available().iter().filter_map(Store::as_image) {
        for &length in lengths {
            check(
                &format!("{store:?}, {length} lines"),
                &oracle_images(length, &first, &step),
                |lines| store.write_images(lines, first, step),
            );
        }
    }
}

#[test]
fn what_is_not_tested_here_is_said() {
    for info in Store::table().iter().filter(|info| !info.available) {
        eprintln!("notice: {} is not tested: this CPU lacks {}", info.name, info.needs);
    }
    assert!(!Store::available().is_empty());
}

#[test]
fn every_store_zeroes_its_range_alone() {
    for store in Store::available() {
        for length in LENGTHS {
            let zeros = vec![Line::default(); length];
            check(&format!("{store:?}, {length} lines"), &zeros, |lines| store.zero(lines));
        }
    }
}

#[test]
fn every_image_store_counts_and_wraps() {
    let max = u64::MAX;
    let first = [0, 1, max, max - 3, 1 << 63, 0xffff_ffff, 0x0123_4567_89ab_cdef, 7];
    check_images(first, [0, 1, 1, max, 1 << 63, 1, 0x1111_2222_3333_4444, 0], &LENGTHS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_image_with_any_step(first: [u64; 8], step: [u64; 8], length in 0usize..100) {
        check_images(first, step, &[length]);
    }
}

#[test]
fn the_memset_call_zeroes_one_line() {
    check("memset_call", &[Line::default()], |lines| memset_call(&mut lines[0]));
}

#[test]
fn names_are_unique_and_found() {
    let table = Store::table();
    for info in &table {
        assert_eq!(table.iter().filter(|other| other.name == info.name).count(), 1);
        match Store::named(info.name) {
            Ok(store) => {
                assert!(info.available);
                assert_eq!((store.name(), store.kind()), (info.name, info.kind));
                assert_eq!(store.as_image().is_some(), info.writes_images);
            }
            Err(StoreError::Missing { name, available, .. }) => {
                assert!(!info.available && name == info.name);
                assert!(available.contains(&"portable".to_owned()));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn zero_only_stores_are_the_known_ones() {
    let zero_only = ["libc-memset", "rep-stosb", "rep-stosq", "clzero", "dc-zva"];
    for info in Store::table() {
        assert_eq!(!info.writes_images, zero_only.contains(&info.name), "{}", info.name);
    }
}

#[test]
fn a_wrong_name_gets_the_list_and_a_suggestion() {
    let error = Store::named("portabel").unwrap_err();
    let StoreError::Unknown { nearest, known, .. } = &error else { panic!("{error}") };
    assert_eq!(nearest.as_deref(), Some("portable"));
    assert!(known.iter().any(|name| name == "unrolled"));
    let text = error.to_string();
    assert!(text.contains("did you mean \"portable\"?") && text.contains("libc-memset"), "{text}");
    let far = Store::named(&"x".repeat(100_000)).unwrap_err();
    assert!(matches!(far, StoreError::Unknown { nearest: None, .. }));
    assert!(matches!(Store::named(""), Err(StoreError::Unknown { nearest: None, .. })));
}

#[test]
fn the_best_stores_have_the_kind_asked_for() {
    let temporal = Store::best_image(StoreKind::Temporal);
    let streaming = Store::best_image(StoreKind::NonTemporal);
    assert!(temporal.writes_images() && streaming.writes_images());
    assert_eq!(temporal.kind(), StoreKind::Temporal);
    let native = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    assert_eq!(streaming.kind() == StoreKind::NonTemporal, native);
    assert_eq!(Store::default_zero().kind(), StoreKind::Temporal);
}

// period 3        | head 0 | body 1 | body 2 | head 1 | body 4 | body 5 | head 2 | body 7 |
#[test]
fn blocks_are_images_with_a_head_in_front_of_each() {
    let head = Ramp { first: [7; 8], step: [100; 8] };
    let body = Ramp { first: [1; 8], step: [u64::MAX, 1, 2, 3, 4, 5, 6, 7] };
    for store in Store::available().iter().filter_map(|s| s.as_image()) {
        for (length, period) in [(0, 3), (1, 3), (8, 3), (9, 1), (64, 16), (5, 64), (5, 0)] {
            let mut lines = vec![Line::new([u64::MAX; 8]); length];
            store.write_blocks(&mut lines, head, body, period);
            for (i, line) in lines.iter().enumerate() {
                let expected = match (i.checked_rem(period), i.checked_div(period)) {
                    (Some(0), Some(block)) => head.at(block),
                    (Some(_), _) => body.at(i),
                    _ => [u64::MAX; 8],
                };
                assert_eq!(line.words(), expected, "{}, line {i} of {length}", store.name());
            }
        }
    }
}
