// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;
use tempfile::TempDir;
use zbus::blocking::MessageIterator;
use zbus::message::Type;

const FOLDER: &str = "/cg/user.slice/user-1000.slice/session-2.scope";

fn unit() -> Unit {
    Unit::from_folder(FOLDER).expect("a unit")
}

/// Returns a folder with the socket of the system bus.
pub(crate) fn socket() -> (TempDir, UnixListener) {
    let run = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(run.path().join("dbus")).expect("the server of the test works");
    let listener = UnixListener::bind(run.path().join("dbus/system_bus_socket"))
        .expect("the server of the test works");
    (run, listener)
}

/// Answers each call of one connection with the result of `answer` for its method and signature;
/// returns these.
pub(crate) fn manager(
    listener: UnixListener,
    mut answer: impl FnMut(&str) -> Result<u64, &'static str> + Send + 'static,
) -> JoinHandle<Vec<String>> {
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("the server of the test works");
        let builder = Builder::async_io_unix_stream(stream)
            .server(zbus::Guid::generate())
            .expect("the server of the test works");
        // The iterator must exist before the first call arrives.
        let messages: MessageIterator =
            builder.p2p().build_message_iterator().expect("the server of the test works");
        let connection = Connection::from(zbus::Connection::from(messages.inner()));
        let mut calls = Vec::new();
        for message in messages.map_while(Result::ok) {
            if message.message_type() != Type::MethodCall {
                continue;
            }
            let header = message.header();
            let method = header.member().expect("the server of the test works").to_string();
            if method == "Hello" {
                connection.reply(&header, &":1.7").expect("the server of the test works");
                continue;
            }
            calls.push(format!("{method} {}", message.body().signature().to_string_no_parens()));
            let _ = match (method.as_str(), answer(&method)) {
                (_, Err(name)) => connection.reply_error(&header, name, &"no"),
                ("Get", Ok(0)) => connection.reply(&header, &Value::from("252.38-1~deb12u1")),
                ("Get", Ok(number)) => connection.reply(&header, &Value::from(number)),
                _ => connection.reply(&header, &()),
            };
        }
        calls
    })
}

#[test]
fn calls_have_the_signature_that_systemd_expects() {
    let (run, listener) = socket();
    let served = manager(listener, |_| Ok(u64::MAX));
    let bus = Bus::new(run.path());
    assert_eq!(bus.get(&unit(), Property::CpuWeight), Ok(-1));
    assert_eq!(bus.set(&unit(), Property::CpuWeight, 3_000), Ok(()));
    assert_eq!(bus.start(&unit(), 4_711), Ok(()));
    drop(bus);
    let expected = ["Get ss", "SetUnitProperties sba(sv)", "StartTransientUnit ssa(sv)a(sa(sv))"];
    assert_eq!(served.join().expect("the server does not panic"), expected);
}

#[test]
fn errors_have_their_meaning() {
    let (run, listener) = socket();
    let served = manager(listener, |method| match method {
        "Get" => Err("org.freedesktop.systemd1.NoSuchUnit"),
        "SetUnitProperties" => Err("org.freedesktop.DBus.Error.AccessDenied"),
        _ => Err("org.freedesktop.systemd1.UnitExists"),
    });
    let bus = Bus::new(run.path());
    assert_eq!(bus.get(&unit(), Property::IoWeight), Err(KnobFault::Vanished));
    assert_eq!(bus.set(&unit(), Property::MemoryLow, 0), Err(KnobFault::Refused(libc::EACCES)));
    assert_eq!(bus.start(&unit(), 1), Err(KnobFault::Refused(libc::EEXIST)));
    drop(bus);
    assert_eq!(served.join().expect("the server does not panic").len(), 3);
}

#[test]
fn an_old_systemd_and_a_missing_one_are_reported() {
    let (run, listener) = socket();
    let served = manager(listener, |_| Ok(0));
    let bus = Bus::new(run.path());
    assert_eq!(bus.defect(ServiceManager::System), None);
    let missing = bus.defect(ServiceManager::User(77)).expect("there is none");
    assert!(missing.contains("user 77 has no message bus"), "{missing}");
    drop(bus);
    served.join().expect("the server does not panic");
    for (text, number) in [
        ("252.38-1~deb12u1", Some(252)),
        ("v239", Some(239)),
        ("systemd 219", Some(219)),
        ("x", None),
    ] {
        assert_eq!(version(text), number, "{text}");
    }
}

#[test]
fn a_bus_of_another_user_is_not_believed() {
    let run = tempfile::tempdir().expect("a folder");
    let folder = run.path().join("user/77");
    std::fs::create_dir_all(&folder).expect("the server of the test works");
    std::os::unix::fs::chown(run.path(), Some(77), None).expect("the server of the test works");
    let listener = UnixListener::bind(folder.join("bus")).expect("the server of the test works");
    std::os::unix::fs::chown(folder.join("bus"), Some(77), None)
        .expect("the server of the test works");
    let bus = Bus::new(run.path());
    let unit = Unit { service_manager: ServiceManager::User(77), ..unit() };
    assert_eq!(
        bus.get(&unit, Property::CpuWeight),
        Err(KnobFault::Refused(libc::EPERM)),
        "root listens"
    );
    let (stream, _) = listener.accept().expect("the server of the test works");
    let peer =
        rustix::net::sockopt::socket_peercred(&stream).expect("the server of the test works");
    assert_eq!(peer.uid.as_raw(), 77, "it was called as the user");
}

#[test]
fn a_manager_that_hangs_is_asked_once() {
    let (run, listener) = socket();
    let bus = Bus::new(run.path());
    for _ in 0..5 {
        assert_eq!(bus.get(&unit(), Property::CpuWeight), Err(KnobFault::Refused(libc::ENOTCONN)));
    }
    assert_eq!(bus.state.borrow().opening_count(), 1);
    listener.set_nonblocking(true).expect("the server of the test works");
    assert!(listener.accept().is_ok());
    assert!(listener.accept().is_err(), "it was asked again");
    drop(listener);
    while bus.state.borrow().opening_count() > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn hanging_connections_are_bounded_and_open_ones_work() {
    let (run, listener) = socket();
    let served = manager(listener, |_| Ok(7));
    let bus = Bus::new(run.path());
    assert_eq!(bus.get(&unit(), Property::CpuWeight), Ok(7));
    let hanging = vec![Arc::clone(&bus.state.borrow().opening); HANGING_MAX];
    assert_eq!(bus.open(ServiceManager::User(77)), Err(KnobFault::Refused(libc::ENOTCONN)));
    assert_eq!(bus.get(&unit(), Property::CpuWeight), Ok(7));
    let count = bus.state.borrow().opening_count();
    assert_eq!(count, HANGING_MAX, "a refused connection does not count");
    drop(hanging);
    assert_eq!(bus.open(ServiceManager::User(78)), Err(KnobFault::Vanished), "they have ended");
    drop(bus);
    assert_eq!(served.join().expect("the server does not panic").len(), 2);
}

#[test]
fn a_restore_calls_an_unresponsive_manager_for_a_bounded_time() {
    let (run, listener) = socket();
    let served = manager(listener, |_| Ok(7));
    let bus = Bus::new(run.path());
    bus.give_up(&unit(), FOLDER);
    bus.state.borrow_mut().spent = CREDIT * 100;
    assert_eq!(bus.get(&unit(), Property::CpuWeight), Err(KnobFault::Refused(libc::ENOTCONN)));
    bus.begin_restore();
    assert_eq!(bus.get(&unit(), Property::CpuWeight), Ok(7));
    let (end, late) =
        (bus.state.borrow().until.expect("it is bounded"), KnobFault::Refused(libc::ENOTCONN));
    assert_eq!(bus.state.borrow_mut().admit(ServiceManager::System, end), Err(late));
    bus.end_restore();
    assert_eq!(bus.state.borrow_mut().admit(ServiceManager::System, end), Ok(()));
    assert_eq!((bus.is_late(FOLDER), bus.is_late("/other")), (true, false));
    drop(bus);
    assert_eq!(served.join().expect("the server does not panic").len(), 1);
}

#[test]
fn calls_that_follow_one_another_have_a_bound_together() {
    let bus = Bus::new(Path::new("/nonexistent"));
    let mut state = bus.state.borrow_mut();
    let now = state.last;
    state.spent = CREDIT;
    assert_eq!(state.admit(ServiceManager::System, now), Err(KnobFault::Later));
    assert!(
        crate::why::SkipReason::Later.to_string().contains("systemd"),
        "it is not only the kernel"
    );
    assert_eq!(
        state.admit(ServiceManager::System, now + Duration::from_millis(100)),
        Ok(()),
        "time gives it back"
    );
    state.closed.insert(ServiceManager::System, now + REST);
    assert_eq!(
        state.admit(ServiceManager::System, now + REST / 2),
        Err(KnobFault::Refused(libc::ENOTCONN))
    );
    assert_eq!(state.admit(ServiceManager::User(7), now + REST / 2), Ok(()), "another one answers");
    assert_eq!(state.admit(ServiceManager::System, now + REST), Ok(()));
}
