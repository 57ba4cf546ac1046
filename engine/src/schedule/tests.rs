//! Schedules without a clock: starts, backlogs, sessions, rates that change, and the grid.

use super::*;
use proptest::prelude::*;

const TIMETABLE: Timetable = Timetable {
    warmup_begin_ns: 100,
    measurement_begin_ns: 350,
    measurement_end_ns: Some(1_000),
};
const ALONE: Share = Share {
    first_client: 0,
    clients: 1,
    all_clients: 1,
};
const SECOND: u64 = crate::clock::NS_PER_S;

/// A measurement without a warm-up.
fn lasting(duration_s: u64) -> Timetable {
    Timetable {
        warmup_begin_ns: 0,
        measurement_begin_ns: 0,
        measurement_end_ns: Some(duration_s * SECOND),
    }
}

fn draw(seed: u64) -> Draw {
    let mut generator = crate::random::Generator::from_seed(seed);
    Box::new(move || generator.unit())
}

fn schedule(load: &str, timetable: Timetable, share: Share) -> Schedule {
    seeded(load, timetable, share, 7)
}

fn seeded(load: &str, timetable: Timetable, share: Share, seed: u64) -> Schedule {
    let load: Load = serde_json::from_str(load).unwrap();
    assert_eq!(Vec::<String>::new(), load.problems());
    let draws = Draws {
        arrivals: draw(seed),
        thinking: draw(seed + 1),
    };
    Schedule::new(&load, timetable.into(), share, draws)
}

/// Every start of the client at `slot`, which is always free.
fn starts(schedule: &mut Schedule, slot: usize) -> Vec<u64> {
    std::iter::from_fn(|| schedule.take_start(slot, 0)).collect()
}

fn skipped(schedule: &mut Schedule) -> Vec<Phase> {
    std::iter::from_fn(|| schedule.take_skipped()).collect()
}

#[test]
fn a_phase_is_where_the_start_lies() {
    let phases = [100, 349, 350, 999, 1_000].map(|ns| TIMETABLE.phase_at(ns));
    use Phase::*;
    assert_eq!(
        [
            Some(Warmup),
            Some(Warmup),
            Some(Measurement),
            Some(Measurement),
            None
        ],
        phases
    );
}

#[test]
fn a_closed_loop_starts_when_the_client_has_thought() {
    let load = r#"{"kind": "closed", "think_time_s": 1e-7}"#;
    let mut schedule = schedule(load, TIMETABLE, ALONE);
    assert_eq!(Some(300), schedule.take_start(0, 200));
    assert_eq!(None, schedule.take_start(0, 900));
    schedule.stop();
    assert_eq!(None, schedule.take_start(0, 200));
}

#[test]
fn exponential_think_times_have_their_mean_and_spread() {
    let load = r#"{"kind": "closed", "think_time_s": 0.001, "think_time": "exponential"}"#;
    let mut schedule = schedule(load, lasting(1 << 30), ALONE);
    let pauses: Vec<_> = (0..100_000)
        .map(|_| schedule.take_start(0, 5).unwrap() as f64 - 5.0)
        .collect();
    let mean_ns = pauses.iter().sum::<f64>() / 1e5;
    let variance = pauses
        .iter()
        .map(|pause| (pause - mean_ns).powi(2))
        .sum::<f64>()
        / 1e5;
    // The standard error of the mean is 0.3 %; an exponential's deviation equals its mean.
    assert!((0.985e6..1.015e6).contains(&mean_ns), "{mean_ns}");
    assert!((0.97..1.03).contains(&(variance.sqrt() / mean_ns)));
}

#[test]
fn constant_arrivals_keep_their_rate_when_nobody_is_free() {
    let load = r#"{"kind": "open", "rate_per_s": 1e7, "arrival": "constant"}"#;
    let mut schedule = schedule(load, TIMETABLE, ALONE);
    let starts: Vec<_> = std::iter::from_fn(|| schedule.take_start(0, 950)).collect();
    assert_eq!(vec![200, 300, 400, 500, 600, 700, 800, 900], starts);
}

#[test]
fn at_the_end_overdue_starts_are_skipped_in_their_phase() {
    let load = r#"{"kind": "open", "rate_per_s": 1e7, "arrival": "constant"}"#;
    let mut schedule = schedule(load, TIMETABLE, ALONE);
    schedule.skip_overdue(600);
    use Phase::*;
    assert_eq!(
        vec![Warmup, Warmup, Measurement, Measurement],
        skipped(&mut schedule)
    );
    assert_eq!(Some(600), schedule.take_start(0, 0));
}

#[test]
fn poisson_arrivals_have_the_rate_asked_for_and_independent_gaps() {
    let load = r#"{"kind": "open", "rate_per_s": 10000}"#;
    let starts = starts(&mut schedule(load, lasting(10), ALONE), 0);
    // 100,000 expected, standard deviation 316.
    assert!(
        (98_700..101_300).contains(&starts.len()),
        "{}",
        starts.len()
    );
    assert!(starts.is_sorted());
    // Of exponential gaps, 1 / e are longer than the mean (standard deviation 0.15 %).
    let long = starts
        .windows(2)
        .filter(|pair| pair[1] - pair[0] > 100_000)
        .count();
    let part = long as f64 / starts.len() as f64;
    assert!((0.3619..0.3739).contains(&part), "{part}");
}

#[test]
fn steps_and_ramps_have_the_arrivals_their_area_says() {
    let load = r#"{"kind": "open", "arrival": "constant", "stages": [
        {"duration_s": 2, "rate_per_s": 1000},
        {"duration_s": 3, "rate_per_s": 0},
        {"duration_s": 4, "rate_per_s": 0, "end_rate_per_s": 2000},
        {"duration_s": 2, "rate_per_s": 2000, "end_rate_per_s": 500}]}"#;
    let timetable = Timetable {
        warmup_begin_ns: 7 * SECOND,
        measurement_begin_ns: 8 * SECOND,
        measurement_end_ns: Some(21 * SECOND),
    };
    let starts = starts(&mut schedule(load, timetable, ALONE), 0);
    let within = |from_s: f64, to_s: f64| {
        let range = (8.0 + from_s) * 1e9..(8.0 + to_s) * 1e9;
        starts
            .iter()
            .filter(|&&start_ns| range.contains(&(start_ns as f64)))
            .count() as i64
    };
    // The warm-up goes at the first stage's rate; the last one's end rate stays.
    for (from_s, to_s, expected) in [
        (-1.0, 0.0, 1000),
        (0.0, 2.0, 2000),
        (2.0, 5.0, 0),
        (5.0, 7.0, 1000),
        (7.0, 9.0, 3000),
        (9.0, 10.0, 1625),
        (10.0, 11.0, 875),
        (11.0, 13.0, 1000),
    ] {
        let found = within(from_s, to_s);
        assert!(
            (found - expected).abs() <= 1,
            "{from_s}: {found}, not {expected}"
        );
    }
    // On a ramp the gaps are those of the rate there: at its middle 1000/s.
    let middle = starts.partition_point(|&start_ns| start_ns < 15 * SECOND);
    let gap_ns = (starts[middle + 5] - starts[middle - 5]) / 10;
    assert!((995_000..1_005_000).contains(&gap_ns), "{gap_ns}");
}

#[test]
fn a_rate_that_ends_at_zero_ends_the_starts() {
    let load = r#"{"kind": "open", "stages": [{"duration_s": 1, "rate_per_s": 1000, "end_rate_per_s": 0}]}"#;
    let starts = starts(&mut schedule(load, lasting(100), ALONE), 0);
    assert!((400..600).contains(&starts.len()), "{}", starts.len());
    assert!(starts.iter().all(|&start_ns| start_ns <= SECOND));
}

#[test]
fn clients_with_schedules_of_their_own_interleave() {
    let load =
        r#"{"kind": "open", "rate_per_s": 1000, "arrival": "constant", "schedule": "per_client"}"#;
    let mut all = Vec::new();
    for first_client in [0, 2] {
        let share = Share {
            first_client,
            clients: 2,
            all_clients: 4,
        };
        let mut schedule = schedule(load, lasting(1), share);
        for slot in 0..2 {
            let own = starts(&mut schedule, slot);
            assert!(
                own.windows(2)
                    .all(|pair| (3_999_999..=4_000_001).contains(&(pair[1] - pair[0])))
            );
            all.extend(own);
        }
    }
    all.sort_unstable();
    assert!((998..=1_000).contains(&all.len()), "{}", all.len());
    assert!(
        all.windows(2)
            .all(|pair| (999_998..=1_000_002).contains(&(pair[1] - pair[0])))
    );
}

#[test]
fn a_backlog_bounded_by_number_turns_away_what_comes_when_it_is_full() {
    let load = r#"{"kind": "open", "rate_per_s": 1e7, "arrival": "constant", "backlog_limit": 2}"#;
    let mut schedule = schedule(load, TIMETABLE, ALONE);
    // Nobody was free until 550: 200 and 300 wait, 400 and 500 found the backlog full.
    schedule.admit(550);
    use Phase::Measurement;
    assert_eq!(vec![Measurement, Measurement], skipped(&mut schedule));
    // One leaves, so 600 may wait; 700 may not.
    assert_eq!(Some(200), schedule.take_start(0, 555));
    assert_eq!(Some(300), schedule.take_start(0, 710));
    assert_eq!(vec![Measurement], skipped(&mut schedule));
    assert_eq!(Some(600), schedule.take_start(0, 711));
    assert_eq!(Some(800), schedule.take_start(0, 712));
    schedule.skip_overdue(1_000);
    assert_eq!(vec![Measurement], skipped(&mut schedule));
}

#[test]
fn a_backlog_bounded_by_time_turns_away_what_waited_longer() {
    let load =
        r#"{"kind": "open", "rate_per_s": 1e7, "arrival": "constant", "backlog_limit_s": 2e-7}"#;
    let mut schedule = schedule(load, TIMETABLE, ALONE);
    assert_eq!(Some(400), schedule.take_start(0, 600));
    use Phase::*;
    assert_eq!(vec![Warmup, Warmup], skipped(&mut schedule));
    assert_eq!(Some(500), schedule.take_start(0, 700));
    assert_eq!(Vec::<Phase>::new(), skipped(&mut schedule));
}

#[test]
fn a_session_is_several_transactions_of_one_client() {
    let load = r#"{"kind": "partly_open", "sessions_per_s": 1e7, "arrival": "constant",
        "transactions_per_session": 3, "think_time_s": 1e-8}"#;
    let share = Share {
        clients: 2,
        all_clients: 2,
        ..ALONE
    };
    let mut schedule = schedule(load, TIMETABLE, share);
    assert_eq!(Some(200), schedule.take_start(0, 150));
    assert_eq!(Some(300), schedule.take_start(1, 150));
    // Within a session the next start comes when the client has thought, not by the schedule.
    assert_eq!(Some(225), schedule.take_start(0, 215));
    assert_eq!(Some(250), schedule.take_start(0, 240));
    assert_eq!(Some(400), schedule.take_start(0, 260));
}

#[test]
fn a_start_that_is_given_back_is_the_next_one() {
    let load = r#"{"kind": "open", "rate_per_s": 1e7, "arrival": "constant"}"#;
    let mut schedule = schedule(load, TIMETABLE, ALONE);
    let taken: Vec<_> = (0..3).map(|_| schedule.take_start(0, 0)).collect();
    assert_eq!(vec![Some(200), Some(300), Some(400)], taken);
    schedule.give_back(0, 300);
    schedule.give_back(0, 200);
    let taken: Vec<_> = (0..3).map(|_| schedule.take_start(0, 0)).collect();
    assert_eq!(vec![Some(200), Some(300), Some(500)], taken);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_starts_do_not_depend_on_the_number_of_workers(
        clients in 1_usize..40, workers in 1_usize..5, seed in any::<u64>(), constant in any::<bool>(),
    ) {
        let arrival = if constant { "constant" } else { "poisson" };
        let load = format!(r#"{{"kind": "open", "rate_per_s": 500, "arrival": "{arrival}"}}"#);
        let seed = seed >> 1;
        let mut whole = seeded(&load, lasting(2), Share { clients, all_clients: clients, first_client: 0 }, seed);
        let expected = starts(&mut whole, 0);
        let mut dealt = Vec::new();
        let workers = workers.min(clients);
        for worker in 0..workers {
            let first_client = clients * worker / workers;
            let share = Share { first_client, clients: clients * (worker + 1) / workers - first_client, all_clients: clients };
            let own = starts(&mut seeded(&load, lasting(2), share, seed), 0);
            // Everybody gets its part, within what the deal's stride leaves uneven.
            let part = own.len() as f64 / expected.len() as f64 - share.clients as f64 / clients as f64;
            prop_assert!(part.abs() < 0.05, "{}", part);
            dealt.extend(own);
        }
        dealt.sort_unstable();
        prop_assert_eq!(expected, dealt);
    }

    /// However clients come and go: every start that is due is taken once, skipped once, or left for the end.
    #[test]
    fn no_start_is_lost_or_made_twice(
        gaps in proptest::collection::vec(1_u64..3_000_000, 1..200),
        limit in proptest::option::of(1_u64..20), wait_ms in proptest::option::of(1_u64..20),
        per_client in any::<bool>(), seed in 0_u64..1_000,
    ) {
        let limits = limit.map_or(String::new(), |limit| format!(r#", "backlog_limit": {limit}"#))
            + &wait_ms.map_or(String::new(), |ms| format!(r#", "backlog_limit_s": {}"#, ms as f64 / 1e3));
        let sharing = if per_client { "per_client" } else { "shared" };
        let load = |limits: &str| format!(r#"{{"kind": "open", "rate_per_s": 2000, "schedule": "{sharing}"{limits}}}"#);
        let share = Share { first_client: 0, clients: 3, all_clients: 3 };
        let mut unlimited = seeded(&load(""), lasting(1), share, seed);
        let mut limited = seeded(&load(&limits), lasting(1), share, seed);
        // Own schedules draw in the order clients come, so only a shared one has the same starts both times.
        let end_ns = gaps.iter().sum::<u64>().min(SECOND);
        let (mut now_ns, mut taken, mut ahead) = (0, 0_usize, 0_usize);
        for (turn, gap_ns) in gaps.iter().enumerate() {
            now_ns += gap_ns;
            limited.admit(now_ns);
            if let Some(start_ns) = limited.take_start(turn % 3, now_ns) {
                prop_assert!(wait_ms.is_none_or(|ms| now_ns.saturating_sub(start_ns) <= ms * 1_000_000));
                if start_ns < end_ns { taken += 1 } else { ahead += 1 }
            }
        }
        limited.skip_overdue(end_ns);
        let lost = skipped(&mut limited).len();
        if !per_client {
            let all = starts(&mut unlimited, 0).into_iter().filter(|&start_ns| start_ns < end_ns).count();
            prop_assert!(taken + lost + ahead >= all && taken + lost <= all, "{} {} {} {}", taken, lost, ahead, all);
            if ahead == 0 { prop_assert_eq!(all, taken + lost); }
        }
    }
}

#[test]
fn the_grid_is_cut_where_phases_change() {
    let mut grid = Grid::new(TIMETABLE.into(), 200);
    let mut seen = Vec::new();
    for _ in 0..8 {
        seen.push((grid.index(), grid.phase(), grid.begin_ns(), grid.end_ns()));
        grid.advance();
    }
    use Phase::*;
    let expected = vec![
        (0, Warmup, 100, 300),
        (1, Warmup, 300, 350),
        (2, Measurement, 350, 550),
        (3, Measurement, 550, 750),
        (4, Measurement, 750, 950),
        (5, Measurement, 950, 1_000),
        (6, Measurement, 1_000, 1_200),
        (7, Measurement, 1_200, 1_400),
    ];
    assert_eq!(expected, seen);
}

proptest! {
    #[test]
    fn the_grid_has_no_gap_and_always_moves(interval_ns in 1_u64..400, warmup_ns in 0_u64..300, duration_ns in proptest::option::of(1_u64..900)) {
        let timetable = Timetable {
            warmup_begin_ns: 5, measurement_begin_ns: 5 + warmup_ns,
            measurement_end_ns: duration_ns.map(|ns| 5 + warmup_ns + ns),
        };
        let mut grid = Grid::new(timetable.into(), interval_ns);
        for _ in 0..50 {
            let (begin_ns, end_ns) = (grid.begin_ns(), grid.end_ns());
            prop_assert!(begin_ns < end_ns && end_ns <= begin_ns + interval_ns);
            for boundary_ns in [timetable.measurement_begin_ns, timetable.measurement_end_ns.unwrap_or(0)] {
                prop_assert!(boundary_ns <= begin_ns || boundary_ns >= end_ns);
            }
            grid.advance();
            prop_assert_eq!(end_ns, grid.begin_ns());
        }
    }
}
