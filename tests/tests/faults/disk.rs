//! A disk that fails under a gateway that is asked for everything at once.

use tidings_protocol::session_api::ErrorType;
use tidings_tests::audit::audit;
use tidings_tests::{
    Dice, Disk, DoorClient, Ended, Fault, Gateway, Load, RunningLoad, Scratch, Setup, seed, until,
};

use crate::{record, status};

/// How many requests are answered before a fault.
const BEFORE: u64 = 100;
/// The fault strikes within so many calls.
const WITHIN_CALLS: u64 = 20;

/// A gateway on a disk, under load.
struct Rig {
    gateway: Gateway,
    disk: Disk,
    dice: Dice,
}

impl Rig {
    fn new() -> (Self, RunningLoad) {
        let mut dice = Dice::new(seed());
        let scratch = Scratch::new();
        let disk = Disk::new(&scratch);
        let gateway = Gateway::start_as(&scratch, disk.under(healthy()));
        disk.keep_for_power_cuts();
        let running = Load::of_callers(&mut dice).start(&gateway);
        running.work_until(BEFORE);
        let rig = Self {
            gateway,
            disk,
            dice,
        };
        (rig, running)
    }

    /// Lets a fault strike one of the next calls.
    fn strike(&mut self, fault: fn(u32) -> Fault) {
        let nth = 1 + self.dice.below(WITHIN_CALLS);
        self.disk.fail(fault(u32::try_from(nth).expect("small")));
    }

    fn has_struck(&self) -> bool {
        !self.disk.journal().is_empty()
    }

    /// Waits until the fault has ended the gateway.
    fn ends(mut self, running: RunningLoad, hides: fn(&str) -> bool) {
        let ended = self.gateway.wait_for_end();
        let load = running.stop();
        self.has_ended(&ended, hides);
        self.holds_on_a_sound_disk(load);
    }

    /// The gateway has ended as it must. After a fault no call `hides` it: what the files hold
    /// is unknown, and writing or syncing them again would make it look well.
    fn has_ended(&mut self, ended: &Ended, hides: fn(&str) -> bool) {
        named(ended);
        let journal = self.disk.journal();
        assert!(journal[0].starts_with("broken "), "{journal:?}");
        let hiding: Vec<&String> = journal[1..].iter().filter(|call| hides(call)).collect();
        assert_eq!(hiding, Vec::<&String>::new());
        // What a failed fsync was about may be lost, although nobody says so a second time.
        self.disk
            .cut_power(self.gateway.state_dir(), &mut self.dice);
    }

    /// Starts the gateway on a disk that has never failed, and compares what it had answered
    /// with what is there.
    fn holds_on_a_sound_disk(mut self, mut load: Load) {
        self.gateway.restart_as(healthy());
        let wrong = load.compare(self.gateway.state_dir());
        assert_eq!(wrong, Vec::<String>::new());
        let mut door = DoorClient::connect(self.gateway.state_dir());
        let sequence = record(&mut door, "agent:load:afterwards");
        assert!(matches!(sequence, Some(Ok(next)) if next > load.head()));
        assert_eq!(self.gateway.stop(), 0);
    }
}

fn healthy() -> Setup {
    Setup::without_local_node().quiet()
}

#[test]
fn a_write_that_takes_half_is_finished_and_nobody_notices() {
    let (mut rig, running) = Rig::new();
    for _ in 0..5 {
        rig.strike(Fault::ShortWrite);
        until("a short write", || rig.has_struck().then_some(()));
        running.work_until(BEFORE);
    }
    assert_eq!(status(&rig.gateway).gateway.database, "ok");
    let mut load = running.stop();
    assert_eq!(load.compare(rig.gateway.state_dir()), Vec::<String>::new());
    rig.gateway.kill();
    rig.holds_on_a_sound_disk(load);
}

#[test]
fn a_full_disk_stops_writing_and_nothing_else_until_there_is_room() {
    survives_a_full_disk(Fault::Full);
}

#[test]
fn a_disk_that_fills_up_in_the_middle_of_a_write_is_a_full_disk() {
    survives_a_full_disk(Fault::FillsUp);
}

fn survives_a_full_disk(fault: fn(u32) -> Fault) {
    let (mut rig, running) = Rig::new();
    rig.strike(fault);
    let full = until("reading only", || {
        Some(status(&rig.gateway)).filter(|status| status.gateway.database == "read_only")
    });
    let warning = &full.gateway.warnings[0];
    assert!(
        warning.contains("state.sqlite") && warning.contains("the disk is full"),
        "{warning}"
    );
    // Everybody goes on asking and is told so; whoever only reads is answered.
    running.work_until(BEFORE);
    let mut door = DoorClient::connect(rig.gateway.state_dir());
    let error = record(&mut door, "agent:load:target-0").expect("an answer");
    let error = error.expect_err("nothing can be written");
    assert_eq!(error.error_type, ErrorType::TryLater, "{error:?}");
    assert!(error.hint.is_some(), "{error:?}");
    let listed = rig.gateway.ask(&["signals", "list", "--limit", "1"]);
    assert_eq!(listed["signals"].as_array().map(Vec::len), Some(1));

    rig.disk.heal();
    until("writing again by itself", || {
        (status(&rig.gateway).gateway.database == "ok").then_some(())
    });
    running.work_until(BEFORE);
    let mut load = running.stop();
    assert_eq!(load.compare(rig.gateway.state_dir()), Vec::<String>::new());
    rig.gateway.kill();
    rig.disk.cut_power(rig.gateway.state_dir(), &mut rig.dice);
    rig.holds_on_a_sound_disk(load);
}

#[test]
fn an_fsync_that_fails_ends_the_gateway_and_is_never_tried_again() {
    let (mut rig, running) = Rig::new();
    rig.strike(Fault::BrokenSync);
    rig.ends(running, |_| true);
}

#[test]
fn a_checkpoint_whose_fsync_fails_ends_the_gateway() {
    let (mut rig, running) = Rig::new();
    rig.disk.fail(Fault::BrokenCheckpoint(1));
    // A commit that was on its way stands in the log, which has not failed.
    rig.ends(running, |call| !call.ends_with("-wal"));
}

#[test]
fn a_write_that_fails_ends_the_gateway() {
    let (mut rig, running) = Rig::new();
    rig.strike(Fault::BrokenWrite);
    rig.ends(running, |_| true);
}

#[test]
fn a_read_that_fails_ends_the_gateway() {
    let (mut rig, running) = Rig::new();
    rig.strike(Fault::BrokenRead);
    // A commit that was on its way may still end: what it writes has not failed.
    rig.ends(running, |_| false);
}

/// A fault that ends a start.
struct StartFault {
    fault: fn(u32) -> Fault,
    /// It strikes one of so many calls: not more than any start has.
    calls: u64,
}

const START_FAULTS: [StartFault; 5] = [
    StartFault {
        fault: Fault::Full,
        calls: 40,
    },
    StartFault {
        fault: Fault::FillsUp,
        calls: 40,
    },
    StartFault {
        fault: Fault::BrokenWrite,
        calls: 40,
    },
    StartFault {
        fault: Fault::BrokenSync,
        calls: 4,
    },
    StartFault {
        fault: Fault::BrokenRead,
        calls: 10,
    },
];

impl StartFault {
    fn somewhere(&self, dice: &mut Dice) -> Fault {
        let nth = 1 + dice.below(self.calls);
        (self.fault)(u32::try_from(nth).expect("a small number"))
    }
}

/// How often each is tried.
const TRIES: u32 = 3;

#[test]
fn a_first_start_that_fails_anywhere_is_named_and_the_next_one_begins_afresh() {
    let mut dice = Dice::new(seed());
    for start_fault in &START_FAULTS {
        for _ in 0..TRIES {
            let scratch = Scratch::new();
            let mut disk = Disk::new(&scratch);
            disk.keep_for_power_cuts();
            let mut gateway = Gateway::stopped(&scratch, disk.under(healthy()));
            let fault = start_fault.somewhere(&mut dice);
            disk.fail(fault);
            let answer = gateway.run_refused();
            let error = answer.refused();
            let message = error["message"].as_str().expect("a message");
            assert!(message.contains("state.sqlite"), "{fault:?}: {answer}");
            assert!(error["hint"].is_string(), "{fault:?}: {answer}");
            disk.cut_power(gateway.state_dir(), &mut dice);
            gateway.restart_as(healthy());
            let mut door = DoorClient::connect(gateway.state_dir());
            let first = record(&mut door, "agent:a:main").expect("an answer");
            assert_eq!(first, Ok(1), "{fault:?}");
            let findings = audit(gateway.state_dir()).findings;
            assert_eq!(findings, Vec::<String>::new(), "{fault:?}");
        }
    }
}

#[test]
fn a_start_after_a_crash_may_fail_anywhere_and_loses_nothing() {
    let (mut rig, mut running) = Rig::new();
    for start_fault in &START_FAULTS {
        for _ in 0..TRIES {
            rig.gateway.kill();
            let mut load = running.stop();
            rig.disk.cut_power(rig.gateway.state_dir(), &mut rig.dice);
            let fault = start_fault.somewhere(&mut rig.dice);
            rig.disk.fail(fault);
            // Where there is less to recover than calls to fail, it starts.
            rig.gateway.restart_and_kill();
            rig.disk.cut_power(rig.gateway.state_dir(), &mut rig.dice);
            rig.disk.heal();
            rig.gateway.restart();
            let wrong = load.compare(rig.gateway.state_dir());
            assert_eq!(wrong, Vec::<String>::new(), "{fault:?}");
            running = load.start(&rig.gateway);
            running.work_until(20);
        }
    }
    rig.gateway.kill();
    let load = running.stop();
    rig.holds_on_a_sound_disk(load);
}

#[test]
fn an_fsync_that_fails_while_the_gateway_stops_is_named_too() {
    let (mut rig, running) = Rig::new();
    let load = running.stop();
    rig.disk.fail(Fault::BrokenSync(1));
    let ended = rig.gateway.stop_and_listen();
    rig.has_ended(&ended, |_| true);
    rig.holds_on_a_sound_disk(load);
}

/// The process has said why it ends, with the file, and has a code of its own.
fn named(ended: &Ended) {
    assert_eq!(ended.code, 70, "{ended:?}");
    let error = ended.said.last().expect("an error on stdout");
    assert_eq!(error["ok"], false, "{ended:?}");
    assert_eq!(error["error"]["type"], "internal", "{ended:?}");
    let message = error["error"]["message"].as_str().expect("a message");
    assert!(message.contains("state.sqlite"), "{ended:?}");
    assert!(error["error"]["hint"].is_string(), "{ended:?}");
}
