// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stand-in for KDE's global shortcut daemon on the test's own bus, with the responses of
//! kglobalaccel5.

use std::sync::{Arc, Mutex};
use zbus::blocking::connection::Builder;
use zbus::zvariant::OwnedObjectPath;

const ENTRY: &str = "tipme.desktop";
const COMPONENT: &str = "/component/tipme_desktop";

/// Actions and their keys.
type Held = Arc<Mutex<Vec<(String, Vec<i32>)>>>;
type Info = (String, String, String, String, String, String, Vec<i32>, Vec<i32>);

/// The daemon, which ends on drop.
pub struct Kglobalaccel {
    _bus: zbus::blocking::Connection,
    held: Held,
}

struct Daemon {
    held: Held,
    /// Keys of the entry once it is loaded.
    loads: Vec<(String, Vec<i32>)>,
}

struct Component(Held);

#[zbus::interface(name = "org.kde.KGlobalAccel")]
impl Daemon {
    #[zbus(name = "allComponents")]
    fn all_components(&self) -> Vec<OwnedObjectPath> {
        let other = "/component/kwin";
        [other, COMPONENT].iter().map(|path| (*path).try_into().unwrap()).collect()
    }

    #[zbus(name = "doRegister")]
    fn do_register(&self, action: Vec<String>) {
        assert_eq!((action.len(), action[0].as_str()), (4, ENTRY));
        self.held.lock().unwrap().clone_from(&self.loads);
    }

    #[zbus(name = "unRegister")]
    fn un_register(&self, action: Vec<String>) {
        assert_eq!(action[1], "", "only the dummy goes");
    }

    #[zbus(name = "unregister")]
    fn unregister(&self, component: &str, action: &str) -> bool {
        let mut held = self.held.lock().unwrap();
        let before = held.len();
        held.retain(|(name, _)| component != ENTRY || name != action);
        held.len() < before
    }
}

#[zbus::interface(name = "org.kde.kglobalaccel.Component")]
impl Component {
    #[zbus(name = "isActive")]
    fn is_active(&self) -> bool {
        !self.0.lock().unwrap().is_empty()
    }

    #[zbus(name = "allShortcutInfos")]
    fn all_shortcut_infos(&self) -> Vec<Info> {
        let held = self.0.lock().unwrap();
        let infos = held.iter().map(|(action, keys)| {
            let texts =
                [action.as_str(), "tipme: mark", ENTRY, "tipme", "default", "Default Context"];
            let [action, text, component, name, context, of] = texts.map(str::to_owned);
            (action, text, component, name, context, of, keys.clone(), keys.clone())
        });
        infos.collect()
    }
}

impl Kglobalaccel {
    /// Starts a daemon without shortcuts; once the entry is loaded, it has these actions and keys.
    pub fn start(address: &str, loads: &[(&str, i32)]) -> Kglobalaccel {
        let held = Held::default();
        let loads = loads.iter().map(|(action, key)| ((*action).to_owned(), vec![*key])).collect();
        let daemon = Daemon { held: Arc::clone(&held), loads };
        let builder = Builder::address(address).unwrap().serve_at("/kglobalaccel", daemon).unwrap();
        let builder = builder.serve_at(COMPONENT, Component(Arc::clone(&held))).unwrap();
        let bus = builder.name("org.kde.kglobalaccel").unwrap().build().unwrap();
        Kglobalaccel { _bus: bus, held }
    }

    /// Returns the actions that have keys now.
    pub fn actions(&self) -> Vec<String> {
        self.held.lock().unwrap().iter().map(|(action, _)| action.clone()).collect()
    }
}
