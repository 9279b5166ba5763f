use super::interpreter::{Interpreter, Outcome};
use super::*;
use crate::testing::{Exit, Rig, TestPacket};
use click::config::{Args, NameTable, NoNames};
use diag::{Diagnostics, SourceMap};
use element::BoxElement;
use element::configure::{Direction, Services};
use element::work::Host;
use std::any::Any;
use std::collections::HashMap;
use std::path::PathBuf;

const SECOND_NS: u64 = 1_000_000_000;

/// Runs a script until it does nothing more by itself, and gives what it printed.
fn printed(instructions: &str) -> Vec<String> {
    let mut rig = Rig::new("Script", instructions, 0, 0);
    rig.host().handlers.insert("c.count".into(), "0".into());
    for _ in 0..200 {
        rig.advance(0);
    }
    assert!(rig.warnings().is_empty(), "{:?}", rig.host().printed);
    std::mem::take(&mut rig.host().printed)
}

#[test]
fn texts_and_handlers_are_printed_as_the_manual_says() {
    assert_eq!(
        printed("print c.count, print \"c.count\", print '\"c.count\"'"),
        ["0", "c.count", "\"c.count\""]
    );
    assert_eq!(printed("set x c.count, print $x, print $($x)"), ["c.count", "0"]);
    assert_eq!(printed("set x \"$(c.count)\", print $x"), ["\"0\""]);
    assert_eq!(printed("setq x \"$(c.count)\", print $x"), ["0"]);
    assert_eq!(printed("printn \"a\\<20>b\", printn 1, print 2, printn \"x\", end"), ["a b12"]);
    assert_eq!(printed("read c.count, readq c.count"), ["c.count:\n0", "c.count:\n0"]);
    assert_eq!(
        printed("print $(add $(c.count) 5), print add 1 2, print $(sprintf \"%03d\" 7)"),
        ["5", "3", "007"]
    );
}

#[test]
fn loops_conditions_and_labels_work() {
    let count =
        "set x 0, label begin_loop, print $x, set x $(add $x 1), goto begin_loop $(lt $x 5), print \"end\"";
    assert_eq!(printed(count), ["0", "1", "2", "3", "4", "end"]);
    assert_eq!(printed("goto end $(eq 1 1), print 1"), Vec::<String>::new());
    assert_eq!(
        printed("set i $(add 0$i 1), print $i, goto begin $(lt $i 3), exit, print 9"),
        ["1", "2", "3"]
    );
    assert_eq!(printed("init x 3, print $x, return $x, print 9"), ["3"]);
    assert_eq!(printed("print $(if $(ge 2 1) yes no), print $(now)"), ["yes", "1.000000000"]);
}

#[test]
fn handlers_are_written_and_the_status_is_known() {
    let mut rig =
        Rig::new("Script", "write a.b $(add 1 2) x, print $?, writeq c.d \"q q\", write stop", 0, 0);
    rig.advance(0);
    assert_eq!(rig.host().handlers["a.b"], "3 x");
    assert_eq!(rig.host().handlers["c.d"], "q q");
    assert_eq!(rig.host().printed, ["0"]);
    assert!(rig.host().stopped);
}

#[test]
fn waiting_takes_its_time() {
    let mut rig = Rig::new("Script", "print 1, wait 2s, print 2, wait $(add 1 1)ms, print 3, stop", 0, 0);
    rig.advance(0);
    assert_eq!(rig.host().printed, ["1"]);
    assert_eq!(rig.task().0, Progress::Idle, "the run waits for a script that stops it");
    for _ in 0..3 {
        rig.advance(600_000_000);
    }
    assert_eq!(rig.host().printed, ["1"]);
    rig.advance(600_000_000);
    assert_eq!(rig.host().printed, ["1", "2"]);
    assert!(!rig.host().stopped);
    rig.advance(2_000_000);
    assert_eq!(rig.host().printed, ["1", "2", "3"]);
    assert!(rig.host().stopped);
    assert_eq!(rig.task().0, Progress::Finished);
}

#[test]
fn a_wait_is_over_on_the_dot() {
    let mut rig = Rig::new("Script", "wait 0.25, print 1", 0, 0);
    let start_ns = rig.host().now_ns;
    rig.advance(0);
    assert_eq!(rig.host().fire_at, Some(start_ns + SECOND_NS / 4));
}

#[test]
fn a_pause_waits_for_steps_and_holds_nobody_up() {
    let mut rig = Rig::new("Script", "pause, print 1, pause 2, print 2, wait 9, print 3, stop", 0, 0);
    rig.advance(0);
    assert_eq!(rig.task().0, Progress::Finished);
    rig.write("step", "").unwrap();
    rig.advance(2_000_000);
    assert_eq!(rig.host().printed, ["1"]);
    rig.write("step", "1").unwrap();
    rig.advance(SECOND_NS);
    assert_eq!(rig.host().printed, ["1"]);
    rig.write("step", "2").unwrap();
    rig.advance(SECOND_NS);
    assert_eq!(rig.host().printed, ["1", "2", "3"], "the second step passes the wait");
    assert!(rig.write("step", "x").is_err());
    assert!(Rig::new("Script", "pause", 0, 0).write("nonsense", "").is_err());
}

#[test]
fn a_paused_script_looks_for_steps_ever_more_seldom() {
    let mut rig = Rig::new("Script", "pause", 0, 0);
    let mut waits = vec![];
    for _ in 0..12 {
        rig.advance(SECOND_NS);
        let host = rig.host();
        waits.push((host.fire_at.unwrap() - host.now_ns) / 1_000_000);
    }
    assert_eq!(waits[..4], [2, 4, 8, 16]);
    assert_eq!(waits[10..], [512, 512]);
}

#[test]
fn a_label_can_be_gone_to_from_outside() {
    let mut rig = Rig::new("Script", "print 1, end, label here, print 2", 0, 0);
    rig.advance(0);
    rig.write("goto", "here").unwrap();
    rig.advance(SECOND_NS);
    assert_eq!(rig.host().printed, ["1", "2"]);
    assert_eq!(rig.write("goto", "there").unwrap_err(), "there is no such label");
    rig.write("run", "a b").unwrap();
    rig.advance(SECOND_NS);
    assert_eq!(rig.host().printed, ["1", "2", "1"]);
}

#[test]
fn arguments_and_variables_come_from_outside() {
    let mut rig = Rig::new("Script", "TYPE PASSIVE, export seen $y, set y 1, set seen $#:$1:$2:$args", 0, 0);
    rig.advance(0);
    assert_eq!(rig.read("seen"), "");
    rig.write("run", "a \"b c\"").unwrap();
    rig.advance(SECOND_NS);
    assert_eq!(rig.read("seen"), "2:a:\"b c\":a \"b c\"");
    rig.write("set", "seen 5 6").unwrap();
    assert_eq!(rig.read("seen"), "5 6");
    assert!(rig.write("set", "nobody 5").is_err());
}

#[test]
fn files_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f").display().to_string();
    let script = format!(
        "print >{file} \"one\", print >>{file} c.count, append c.count {file}, print $(cat {file}), \
         print $(catq {file}), save c.count"
    );
    assert_eq!(printed(&script), ["one\n0\n0", "\"one\\n0\\n0\\n\"", "0"]);
    let mut rig = Rig::new("Script", "print >/nonexistent/f 1, print $(cat /nonexistent/g)x", 0, 0);
    rig.advance(0);
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("e: `print >/nonexistent/f 1`: /nonexistent/f: "), "{warnings:?}");
}

#[test]
fn what_goes_wrong_is_told_and_the_script_goes_on() {
    let wrong =
        "read no.handler, goto begin $(add 1 x), set y $(nope), wait $y, error bad $(add 1 1), print 1";
    let mut rig = Rig::new("Script", wrong, 0, 0);
    rig.advance(0);
    let warnings = rig.warnings();
    let expected = [
        "`read no.handler`: no handler `no.handler`",
        "`goto begin $(add 1 x)`: a list of numbers is expected",
        "`goto begin $(add 1 x)`: `$(add 1 x)` is neither true nor false",
        "`set y $(nope)`: no handler `nope`",
        "`wait $y`: `$(nope)` is no time",
        "`error bad $(add 1 1)`: bad 2",
    ];
    assert_eq!(warnings, expected.map(|text| format!("e: {text}")));
    // They are printed when they occur, too.
    let printed = expected.map(|text| {
        let (line, message) = text.split_once("`: ").expect("an instruction");
        format!("While executing {line}` of e :: Script:\n  {message}")
    });
    assert_eq!(rig.host().printed, printed);
}

#[test]
fn an_endless_loop_is_given_up_and_never_holds_the_worker() {
    let mut rig = Rig::new("Script", "label a, set x 1, goto a", 0, 0);
    let mut turns = 0;
    let now_ns = rig.host().now_ns;
    while rig.host().fire_at == Some(now_ns) {
        rig.advance(0);
        turns += 1;
    }
    assert!((5..100).contains(&turns), "{turns}");
    assert!(rig.warnings()[0].contains("1000 jumps without waiting"));
    for own in ["write goto a, label a, write goto a", "set y 1, write run"] {
        let mut rig = Rig::new("Script", own, 0, 0);
        (0..200).for_each(|_| drop(rig.advance(0)));
        assert!(rig.warnings()[0].contains("jumps without waiting"), "{own}");
    }
    let mut rig =
        Rig::new("Script", "set x aaaaaaaa, label a, set x $x$x, goto a $(lt $(length $x) 9999999)", 0, 0);
    (0..200).for_each(|_| drop(rig.advance(0)));
    assert!(rig.warnings().iter().any(|warning| warning.contains("longer than")));
}

#[test]
fn all_mistakes_are_reported_where_they_are() {
    let wrong = "prin x, wait 5parsecs, goto nowhere, goto hre, label here, label, pause x, set, set a, \
                 stop now, read, TYPE SIGNALS INT";
    let mistakes = Rig::try_new("Script", wrong, 0, 0).err().unwrap();
    assert_eq!(mistakes.lines().count(), 11, "{mistakes}");
    for part in [
        "test.click:1:1: error: `prin` is no instruction; did you mean `print`?",
        "test.click:1:14: error: expected a time",
        "there is no label `nowhere`",
        "there is no label `hre`; did you mean `here`?",
        "`label` takes one name",
        "`set` takes a variable and a text",
        "`stop` takes nothing",
        "`read` takes a handler",
        "TYPE: expected `ACTIVE`",
    ] {
        assert!(mistakes.contains(part), "{part}: {mistakes}");
    }
    for (signals, reason) in
        [("", "waits for signals"), (" KILL", "`KILL` is no signal"), (" USR1 x", "`x` is no signal")]
    {
        let mistakes = Rig::try_new("Script", &format!("TYPE SIGNAL{signals}"), 0, 0).err().unwrap();
        assert!(mistakes.contains(reason), "{mistakes}");
    }
    assert!(Rig::try_new("Script", "end", 1, 1).is_ok());
    assert!(Rig::try_new("Script", "TYPE ACTIVE", 1, 0).err().unwrap().contains("TYPE PACKET has ports"));
    assert!(Rig::try_new("Script", "TYPE PACKET", 0, 0).err().unwrap().contains("has inputs"));
}

#[test]
fn a_packet_script_sorts_packets() {
    let script =
        "set n $(add 0$n 1), goto odd $(mod $n 2), goto exit $(eq $n 4), return $(add $input 1), label odd";
    let script = script.replace("$(mod $n 2)", "$(eq $(mod $n 2) 1)");
    let mut rig = Rig::new("Script", &script, 2, 3);
    let packets = vec![TestPacket::frame(&[0; 60]); 6];
    let dropped = Exit::Dropped("script".into());
    let exits =
        |input, rig: &mut Rig| rig.push(input, &packets).into_iter().map(|out| out.exit).collect::<Vec<_>>();
    let port = Exit::Port;
    assert_eq!(exits(0, &mut rig), [port(0), port(1), port(0), dropped.clone(), port(0), port(1)]);
    assert_eq!(exits(1, &mut rig)[1], port(2));
    let mut rig = Rig::new("Script", "return 7", 1, 1);
    assert_eq!(rig.push_one(0, &packets[0]).exit, dropped);
}

/// Services that know elements by name and share state.
#[derive(Default)]
struct World {
    shared: HashMap<String, Arc<dyn Any + Send + Sync>>,
}

impl Services for World {
    fn open_port(&mut self, _: &str, _: Direction) -> Result<Box<dyn port::Port>, String> {
        Err("there are no ports".into())
    }
    fn path(&self, name: &Path) -> PathBuf {
        name.to_path_buf()
    }
    fn shared_any(
        &mut self,
        _: Scope,
        key: &str,
        make: &mut dyn FnMut() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync> {
        self.shared.entry(key.to_string()).or_insert_with(make).clone()
    }
    fn element(&self, _: &str, name: &str) -> Option<(String, &'static str)> {
        (name == "c").then(|| ("c".to_string(), "Counter"))
    }
    fn nf(&self, element: &str) -> usize {
        usize::from(element.starts_with("other/"))
    }
}

impl World {
    fn make(&mut self, class: &Class, name: &str, config: &str) -> Result<BoxElement, String> {
        let (element, said) = self.try_make(class, name, config);
        element.ok_or(said)
    }

    fn try_make(&mut self, class: &Class, name: &str, config: &str) -> (Option<BoxElement>, String) {
        let (mut map, mut diags, names) = (SourceMap::new(), Diagnostics::new(), NameTable::new());
        let source = map.add("test.click", config);
        let config = Spanned::verbatim(config, map.whole(source));
        let mut cx = Configure {
            name,
            config: &config,
            span: config.span,
            shape: Shape { inputs: 0, outputs: 0 },
            worker: 0,
            workers: 1,
            names: &names.scoped(name),
            diags: &mut diags,
            services: self,
        };
        let element = (class.make)(&mut cx);
        (element, diags.render_short(&map))
    }
}

#[test]
fn scripts_run_each_other() {
    let mut world = World::default();
    let sum = "TYPE PASSIVE, init base 10, return $(add $base $1 $2)";
    let mut callee = world.make(&SCRIPT, "x/sum", sum).unwrap();
    let again =
        "print $(sum.run 1 2), print $(sum.mul 2 3), print $(sum.get base), write sum.run 1 1, print $?";
    let mut caller = world.make(&SCRIPT, "x/main", again).unwrap();
    let mut own =
        world.make(&SCRIPT, "y", "set z 4, print $(y.get z) $(y.add 1 $z), print $(y.run)").unwrap();
    let mut rig = Rig::new("Script", "", 0, 0);
    let host = rig.host();
    for element in [&mut callee, &mut caller, &mut own] {
        element.start(&mut Work::new(host, 0));
        element.fire(&mut Work::new(host, 0));
    }
    let warning = "While executing `print $(y.run)` of y :: Script:\n  no handler `y.run`";
    assert_eq!(host.printed[..5], ["13", "6", "10", "0", "4 5"]);
    assert_eq!(host.printed[5..], ["$(y.run)", warning]);
    assert_eq!(caller.take_warnings(), Vec::<String>::new());
    assert_eq!(own.take_warnings().len(), 1);
}

#[test]
fn a_proxy_answers_the_handlers_that_scripts_have_not() {
    let mut world = World::default();
    let answers = "TYPE PROXY, goto known $(eq $0 a), error no $0, label known, returnq \"a $write $args\"";
    let mut proxy = world.make(&SCRIPT, "p", answers).unwrap();
    let calls = "print $(p.a 1 2), write p.a 3, print $?, print $(p.get _), print $(p.add 1 2), write p.b, print $?, \
                 print $(writable p.b p.run) $(writable step) $(writable add)";
    let mut caller = world.make(&SCRIPT, "main", calls).unwrap();
    let mut rig = Rig::new("Script", "", 0, 0);
    let host = rig.host();
    for element in [&mut proxy, &mut caller] {
        element.start(&mut Work::new(host, 0));
        element.fire(&mut Work::new(host, 0));
    }
    let told: Vec<&str> = host.printed.iter().map(String::as_str).collect();
    let said = "While executing `error no $0` of p :: Script:\n  no b";
    let refused = "While executing `write p.b` of main :: Script:\n  `p` ended with an error";
    assert_eq!(told, ["a false 1 2", "0", "a true 3", "3", said, refused, "-1", "true true false"]);
}

#[test]
fn a_list_of_handlers_says_what_is_writable() {
    let mut rig = Rig::new("Script", "print $(writable c.reset), print $(writable c.reset c.count)", 0, 0);
    rig.host().handlers.insert("c.handlers".into(), "count\tr\nreset\tw".into());
    rig.advance(0);
    assert_eq!(rig.host().printed, ["true", "false"]);
}

#[test]
fn scripts_that_call_each_other_in_a_circle_are_told() {
    let mut world = World::default();
    let mut a = world.make(&SCRIPT, "a", "TYPE PASSIVE, return $(b.run)").unwrap();
    let mut b = world.make(&SCRIPT, "b", "TYPE PASSIVE, return $(a.run)x").unwrap();
    let mut endless = world.make(&SCRIPT, "c", "print $(d.run), print 1").unwrap();
    let _d = world.make(&SCRIPT, "d", "TYPE PASSIVE, label l, goto l").unwrap();
    let mut rig = Rig::new("Script", "", 0, 0);
    a.handlers().write("run", "", &mut []).unwrap();
    a.fire(&mut Work::new(rig.host(), 0));
    assert!(b.take_warnings()[0].contains("`a` is running"));
    endless.start(&mut Work::new(rig.host(), 0));
    endless.fire(&mut Work::new(rig.host(), 0));
    let said = &rig.host().printed;
    assert!(said[0].contains("`a` is running"), "{said:?}");
    assert_eq!(said[1], "d :: Script: too many jumps, giving up");
    assert_eq!([&*said[2], &*said[4]], ["$(d.run)", "1"]);
    assert!(said[3].contains("`d` ended with an error"), "{said:?}");
    assert!(endless.take_warnings()[0].contains("`d` ended with an error"));
}

#[test]
fn there_is_one_driver_script_and_unknown_elements_are_warned_of() {
    let mut world = World::default();
    world.make(&DRIVER_MANAGER, "d", "pause").unwrap();
    let mistake = world.make(&SCRIPT, "e", "TYPE DRIVER, pause").err().unwrap();
    assert!(mistake.contains("second driver script"), "{mistake}");
    assert!(mistake.contains("the first (test.click:1:1)"), "{mistake}");
    assert!(world.make(&DRIVER_MANAGER, "other/d", "pause").is_ok(), "another NF has its own");
    let (element, said) = world.try_make(&SCRIPT, "s", "read c.count, write d.x 5, write $d.x");
    assert!(
        element.is_some() && said.contains("test.click:1:21: warning: there is no element `d`"),
        "{said}"
    );
}

fn interpreter(text: &str) -> Interpreter {
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let source = map.add("test.click", text);
    let config = Spanned::verbatim(text, map.whole(source));
    let mut args = Args::new("Script", &config, &NoNames, &mut diags);
    let lines = args.rest();
    let program = program::read(&lines, Path::new(""), &mut args);
    assert!(args.finish());
    let program = Arc::new(completed(program, Type::Driver));
    Interpreter::new(("e".into(), "Script"), program, Arc::downgrade(&Arc::default()), PathBuf::new(), false)
}

#[test]
fn a_driver_script_does_what_is_left_when_the_run_ends() {
    for (text, before, after) in [
        ("pause, print c.count, wait 1, print 2, stop", vec![], vec!["5", "2"]),
        ("wait 1s, print 1, pause, print 2", vec![], vec!["1", "2"]),
        ("print 0, pause, print 1, pause, print 2", vec!["0"], vec!["0", "1"]),
        ("label a, wait 1, print 1, goto a", vec![], vec!["1"]),
        ("", vec![], vec![]),
        ("print 1, stop", vec!["1"], vec!["1"]),
    ] {
        let mut rig = Rig::new("Script", "", 0, 0);
        let host = rig.host();
        host.handlers.insert("c.count".into(), "5".into());
        let mut script = interpreter(text);
        let outcome = script.run(&mut Work::new(host, 0));
        assert_eq!(host.printed, before, "{text}");
        assert_eq!(matches!(outcome, Outcome::Ended(End::Stop)), host.stopped, "{text}");
        script.run_out(&mut Work::new(host, 0));
        assert_eq!(host.printed, after, "{text}");
    }
}

#[test]
fn a_driver_manager_prints_at_the_end() {
    let mut world = World::default();
    let mut driver = world.make(&DRIVER_MANAGER, "d", "pause, printn 1, printn 2, stop").unwrap();
    let mut rig = Rig::new("Script", "", 0, 0);
    let host = rig.host();
    driver.start(&mut Work::new(host, 0));
    driver.fire(&mut Work::new(host, 0));
    let task = driver.task().expect("a task");
    assert_eq!(task.run_task(&mut Vector::new(), &mut Work::new(host, 0)), Progress::Finished);
    driver.stop(&mut Work::new(host, 0));
    assert_eq!(host.printed, ["12"]);
    let _ = host.now_ns();
}

#[test]
fn a_script_holds_the_run_while_it_can_go_on_by_itself() {
    let mut rig = Rig::new("Script", "", 0, 0);
    let mut holds = |class, text: &str| {
        let mut script = World::default().make(class, "s", text).unwrap();
        script.start(&mut Work::new(rig.host(), 0));
        script.fire(&mut Work::new(rig.host(), 0));
        script.holds_run()
    };
    for text in ["wait 1s, stop", "wait 1s, goto stop $(gt 1 0)"] {
        assert!(holds(&DRIVER_MANAGER, text) && holds(&SCRIPT, text), "{text}");
    }
    assert!(holds(&DRIVER_MANAGER, "wait 1s") && !holds(&SCRIPT, "wait 1s"));
    for text in ["pause, stop", "wait_stop, wait 1s, stop", "print 1, stop", "exit, stop", "error, stop"] {
        assert!(!holds(&DRIVER_MANAGER, text) && !holds(&SCRIPT, text), "{text}");
    }
    assert!(!holds(&SCRIPT, "TYPE PASSIVE, wait 1s, stop"));
    // A script that gives steps holds it for one that waits for a step, and would stop.
    let mut gives = |text: &str, other: &str| {
        let mut world = World::default();
        let mut waits = world.make(&SCRIPT, "a", other).unwrap();
        let mut script = world.make(&SCRIPT, "s", text).unwrap();
        for element in [&mut waits, &mut script] {
            element.start(&mut Work::new(rig.host(), 0));
            element.fire(&mut Work::new(rig.host(), 0));
        }
        script.holds_run()
    };
    assert!(
        gives("wait 1s, write a.step", "pause, stop")
            && gives("wait 1s, write a.goto l", "label l, pause, stop")
    );
    assert!(!gives("wait 1s, print 1", "pause, stop") && !gives("wait 1s, write a.step", "pause"));
    assert!(!gives("write a.step", "pause, pause, stop"));
}

#[test]
fn a_driver_script_does_what_is_left_once_when_its_nf_ends() {
    let mut world = World::default();
    let script = "pause, print 1, wait 1s, print 2, pause, print 3";
    let mut driver = world.make(&DRIVER_MANAGER, "d", script).unwrap();
    let mut active = world.make(&SCRIPT, "s", script).unwrap();
    let mut rig = Rig::new("Script", "", 0, 0);
    for element in [&mut driver, &mut active] {
        element.start(&mut Work::new(rig.host(), 0));
        element.fire(&mut Work::new(rig.host(), 0));
        element.end_script(&mut Work::new(rig.host(), 0));
        element.stop(&mut Work::new(rig.host(), 0));
    }
    assert_eq!(rig.host().printed, ["1", "2"], "only the driver script, up to its second pause");
    let refused = driver.handlers().write("step", "1", &mut []).unwrap_err();
    assert!(refused.contains("`d` has stopped"), "{refused}");
    assert_eq!(active.handlers().write("step", "1", &mut []), Ok(()));
}

#[test]
fn requests_to_stop_are_steps_for_a_driver_script() {
    let mut world = World::default();
    let script = "wait_stop 2, print 1, wait 9s, print 2, pause, print 3";
    let mut driver = world.make(&DRIVER_MANAGER, "d", script).unwrap();
    let mut rig = Rig::new("Script", "", 0, 0);
    driver.start(&mut Work::new(rig.host(), 0));
    assert!(driver.decides_end() && !world.make(&SCRIPT, "s", "pause, stop").unwrap().decides_end());
    let mut stop = |rig: &mut Rig| {
        driver.take_stop(false, &mut Work::new(rig.host(), 0));
        driver.fire(&mut Work::new(rig.host(), 0));
        (rig.host().printed.join(" "), rig.host().stopped)
    };
    assert_eq!(stop(&mut rig), (String::new(), false));
    assert_eq!(stop(&mut rig), ("1".into(), false));
    // A step ends a wait for a time, too.
    assert_eq!(stop(&mut rig), ("1 2".into(), false));
    assert_eq!(stop(&mut rig), ("1 2 3".into(), true));
}

#[test]
fn a_driver_script_that_ends_by_a_request_ends_its_nf() {
    for (script, stops) in [("pause, end", true), ("pause, wait 1s, end", false), ("end", true)] {
        let mut driver = World::default().make(&DRIVER_MANAGER, "d", script).unwrap();
        let mut rig = Rig::new("Script", "", 0, 0);
        driver.start(&mut Work::new(rig.host(), 0));
        driver.fire(&mut Work::new(rig.host(), 0));
        assert!(!rig.host().stopped, "{script}");
        driver.take_stop(false, &mut Work::new(rig.host(), 0));
        driver.fire(&mut Work::new(rig.host(), 0));
        assert_eq!(rig.host().stopped, stops, "{script}");
    }
}

#[test]
fn what_a_script_has_not_executed_is_said() {
    for (class, script, at) in [
        (&DRIVER_MANAGER, "pause, print 1, pause, print 2, write a.b 1", Some(("pause", 3, 2))),
        (&SCRIPT, "wait 5s, print 1", Some(("wait 5s", 1, 1))),
        (&SCRIPT, "label x, wait 5s, print 1, goto x $(eq 1 1), print 2", Some(("wait 5s", 2, 2))),
        // Loops that are never left, and scripts of which nothing is left.
        (&SCRIPT, "label x, print 1, wait 5s, goto x", None),
        (&SCRIPT, "print 1, pause, loop", None),
        (&SCRIPT, "print 1, wait 5s, stop", None),
        (&SCRIPT, "TYPE PASSIVE, print 1", None),
        (&DRIVER_MANAGER, "pause, print 1, stop", None),
    ] {
        let mut element = World::default().make(class, "d", script).unwrap();
        let mut rig = Rig::new("Script", "", 0, 0);
        element.start(&mut Work::new(rig.host(), 0));
        element.fire(&mut Work::new(rig.host(), 0));
        element.stop(&mut Work::new(rig.host(), 0));
        let expected = at.map(|(line, number, rest)| {
            let what = if rest == 1 { "instruction" } else { "instructions" };
            format!("d: `{line}`: the run ended here, at instruction {number}: {rest} {what} of the script were not executed")
        });
        assert_eq!(element.take_warnings(), expected.into_iter().collect::<Vec<_>>(), "{script}");
    }
    // When all sources have ended, there is one step, and time to react to it.
    let mut driver = World::default().make(&DRIVER_MANAGER, "d", "pause, print 1, pause, print 2").unwrap();
    let mut rig = Rig::new("Script", "", 0, 0);
    driver.start(&mut Work::new(rig.host(), 0));
    driver.take_stop(true, &mut Work::new(rig.host(), 0));
    driver.fire(&mut Work::new(rig.host(), 0));
    driver.end_script(&mut Work::new(rig.host(), 0));
    assert_eq!(rig.host().printed, ["1"]);
    assert_eq!(driver.take_warnings().len(), 1);
}

#[test]
fn a_variable_of_a_script_goes_before_a_function_of_that_name() {
    let mut world = World::default();
    let mut counts = world.make(&SCRIPT, "s", "export count 7, export add 8, pause").unwrap();
    let mut asks = world.make(&SCRIPT, "t", "print s.count, print $(s.add 1 2), print $(s.mul 2 3)").unwrap();
    let mut rig = Rig::new("Script", "", 0, 0);
    for element in [&mut counts, &mut asks] {
        element.start(&mut Work::new(rig.host(), 0));
        element.fire(&mut Work::new(rig.host(), 0));
    }
    assert_eq!(rig.host().printed, ["7", "8", "6"]);
}

#[test]
fn the_classes_have_codes_that_the_language_knows() {
    for class in CLASSES {
        click::flow::PortSpec::new(class.codes.ports, class.codes.processing, class.codes.flow).unwrap();
    }
}

#[test]
fn a_signal_starts_a_script_each_time() {
    let mut rig = Rig::new("Script", "print $(add $n 1), set n $(add $n 1), TYPE SIGNAL USR2 WINCH", 0, 0);
    rig.advance(100 * 1_000_000);
    assert!(rig.host().printed.is_empty());
    for signal in ["USR2", "USR2", "WINCH"] {
        let number = element::signals::SIGNALS.iter().find(|(name, _)| *name == signal).unwrap().1;
        signal_hook::low_level::raise(number).unwrap();
        rig.advance(20 * 1_000_000);
        rig.advance(20 * 1_000_000);
    }
    assert_eq!(rig.host().printed, ["1", "2", "3"]);
    // The test's process does not lend its signals, as a daemon does not.
    let mut rig = Rig::new("Script", "stop, TYPE SIGNAL INT", 0, 0);
    assert!(rig.warnings().iter().any(|warning| warning.contains("signal INT ends what runs")));
}
