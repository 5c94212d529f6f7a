// SPDX-License-Identifier: MIT OR Apache-2.0
//! Model of the display: known facts, due queries, and reported states. It sends no queries itself.

use super::ask::{Atoms, Facts, Listing, WindowManager};
use super::change::{AttentionChange, Dropped, WINDOWS_MAX, WindowState};
use std::collections::{BTreeMap, BTreeSet};
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    FocusInEvent, MapNotifyEvent, NotifyDetail, NotifyMode, PropertyNotifyEvent,
    ReparentNotifyEvent, UnmapNotifyEvent, Visibility, Window,
};

/// All known facts.
pub(super) struct AttentionView {
    root: Window,
    atoms: Atoms,
    /// The manager or its list may have changed.
    listing_due: bool,
    /// The keyboard focus may have changed.
    keyboard_due: bool,
    /// The window under the pointer may have changed, and with it a keyboard focus that follows the
    /// pointer.
    focus_due: bool,
    manager: Option<WindowManager>,
    /// A manager keeps the list of windows.
    managed: bool,
    windows: BTreeMap<Window, Watched>,
    keyboard: ReportedFocus,
    pointer: ReportedFocus,
    /// Destroyed windows, with their last reported state.
    gone: BTreeMap<Window, WindowState>,
    /// Windows beyond the bound in the last list.
    excess: u32,
    dropped: Dropped,
}

/// A followed window.
#[derive(Default)]
struct Watched {
    /// Its events have been selected.
    heard: bool,
    /// Child of the root window that contains it; itself without a frame.
    frame: Option<Window>,
    /// Its facts have been queried, and it has had no events since.
    fresh: bool,
    facts: Option<Facts>,
    obscured: bool,
    /// It is followed because it had the keyboard focus, not because it is listed.
    adopted: bool,
    reported: Option<WindowState>,
}

/// A focus, with its last reported value.
#[derive(Default)]
struct ReportedFocus {
    now: Option<Window>,
    reported: Option<Option<Window>>,
}

impl AttentionView {
    /// Knows nothing, so everything is due.
    pub(super) fn new(root: Window, atoms: Atoms) -> AttentionView {
        AttentionView {
            root,
            atoms,
            listing_due: true,
            keyboard_due: true,
            focus_due: true,
            manager: None,
            managed: false,
            windows: BTreeMap::new(),
            keyboard: ReportedFocus::default(),
            pointer: ReportedFocus::default(),
            gone: BTreeMap::new(),
            excess: 0,
            dropped: Dropped::default(),
        }
    }

    pub(super) fn manager_pid(&self) -> Option<u32> {
        self.manager.and_then(|manager| manager.pid)
    }

    pub(super) fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Marks the facts that an event makes uncertain.
    pub(super) fn handle(&mut self, event: &Event) {
        match event {
            Event::FocusIn(event) => self.focused(event),
            Event::FocusOut(event) if event.detail != NotifyDetail::INFERIOR => {
                self.keyboard_due = true
            }
            Event::EnterNotify(event) | Event::LeaveNotify(event)
                if event.detail != NotifyDetail::INFERIOR =>
            {
                self.focus_due = true;
            }
            Event::VisibilityNotify(event) => {
                if let Some(watched) = self.windows.get_mut(&event.window) {
                    watched.obscured = event.state == Visibility::FULLY_OBSCURED;
                }
            }
            Event::PropertyNotify(event) => self.property(event),
            Event::MapNotify(event) => self.mapped(event),
            Event::UnmapNotify(event) => self.unmapped(event),
            Event::ReparentNotify(event) => self.reparented(event),
            Event::DestroyNotify(event) => self.destroyed(event.window),
            _ => {}
        }
    }

    /// Usually this event alone determines the keyboard focus, without a query.
    fn focused(&mut self, event: &FocusInEvent) {
        let real = [NotifyMode::NORMAL, NotifyMode::WHILE_GRABBED].contains(&event.mode);
        let vague = [NotifyDetail::POINTER, NotifyDetail::POINTER_ROOT, NotifyDetail::NONE]
            .contains(&event.detail);
        match self.at(event.event).filter(|_| real && !vague) {
            Some(window) => (self.keyboard.now, self.keyboard_due) = (Some(window), false),
            None => self.keyboard_due = true,
        }
    }

    fn property(&mut self, event: &PropertyNotifyEvent) {
        if event.window == self.root {
            self.keyboard_due |= event.atom == self.atoms.active;
            self.listing_due |= [self.atoms.clients, self.atoms.supporting].contains(&event.atom);
        } else if [self.atoms.state, self.atoms.pid, self.atoms.set].contains(&event.atom) {
            self.windows.entry(event.window).and_modify(|watched| watched.fresh = false);
        }
    }

    fn mapped(&mut self, event: &MapNotifyEvent) {
        self.touched(event.window);
        if !self.managed && event.event == self.root && !event.override_redirect {
            self.insert(event.window);
        }
    }

    fn unmapped(&mut self, event: &UnmapNotifyEvent) {
        self.touched(event.window);
        if !self.managed && event.event == self.root {
            self.remove(event.window);
        }
    }

    fn reparented(&mut self, event: &ReparentNotifyEvent) {
        if let Some(watched) = self.windows.get_mut(&event.window) {
            watched.frame = None;
            watched.fresh = false;
        }
        if !self.managed && event.parent != self.root {
            self.remove(event.window);
        }
    }

    fn destroyed(&mut self, window: Window) {
        self.touched(window);
        self.remove(window);
        self.listing_due |= self.manager.is_some_and(|manager| manager.window == window);
    }

    /// The visibility of a window, or of its frame, may have changed.
    fn touched(&mut self, window: Window) {
        for (own, watched) in &mut self.windows {
            if *own == window || watched.frame == Some(window) {
                watched.fresh = false;
                self.focus_due = true;
            }
        }
    }

    /// Starts to follow a window if there is room.
    fn insert(&mut self, window: Window) {
        if window == self.root || self.windows.contains_key(&window) {
            return;
        }
        if self.windows.len() >= WINDOWS_MAX {
            self.dropped.windows += 1;
            return;
        }
        let reported = self.gone.remove(&window);
        self.windows.insert(window, Watched { reported, ..Watched::default() });
        self.focus_due = true;
    }

    fn remove(&mut self, window: Window) {
        let Some(watched) = self.windows.remove(&window) else { return };
        self.focus_due = true;
        self.gone.extend(watched.reported.map(|reported| (window, reported)));
    }

    /// Follows a window that has the keyboard focus and is not listed, if necessary in place of
    /// another one.
    pub(super) fn adopt(&mut self, window: Window) {
        if self.windows.len() >= WINDOWS_MAX {
            let spared = [self.keyboard.now, self.pointer.now];
            let given_up =
                self.windows.keys().rev().copied().find(|other| !spared.contains(&Some(*other)));
            given_up.into_iter().for_each(|other| self.remove(other));
            self.dropped.windows += 1;
        }
        self.insert(window);
        self.windows.entry(window).and_modify(|watched| watched.adopted = true);
    }

    /// Returns `true` if no query is due.
    pub(super) fn settled(&self) -> bool {
        let due = self.listing_due || self.keyboard_due || self.focus_due;
        !due && self
            .windows
            .values()
            .all(|watched| watched.heard && watched.fresh && watched.frame.is_some())
    }

    /// Returns `true` if the keyboard focus is known to differ from the last report, even if other
    /// queries are due.
    pub(super) fn has_switched(&self) -> bool {
        let watched = self.keyboard.now.and_then(|window| self.windows.get(&window));
        !self.keyboard_due
            && self.keyboard.reported.is_some_and(|reported| reported != self.keyboard.now)
            && watched.is_some_and(|watched| watched.reported.is_some())
    }

    pub(super) fn take_listing_due(&mut self) -> bool {
        std::mem::take(&mut self.listing_due)
    }

    pub(super) fn take_focus_due(&mut self) -> bool {
        std::mem::take(&mut self.keyboard_due) | std::mem::take(&mut self.focus_due)
    }

    /// Replaces the list of windows; windows that were added without being listed stay.
    pub(super) fn relist(&mut self, manager: Option<WindowManager>, listing: Listing) {
        (self.manager, self.managed) = (manager, listing.managed);
        let listed: BTreeSet<Window> = listing.windows.iter().copied().collect();
        let left: Vec<Window> = self
            .windows
            .iter()
            .filter(|(window, watched)| !watched.adopted && !listed.contains(window))
            .map(|(window, _)| *window)
            .collect();
        left.into_iter().for_each(|window| self.remove(window));
        for window in listing.windows {
            self.insert(window);
            self.windows.entry(window).and_modify(|watched| watched.adopted = false);
        }
        self.dropped.windows += u64::from(listing.excess.saturating_sub(self.excess));
        self.excess = listing.excess;
        self.focus_due = true;
    }

    /// Takes the windows of which the caller must select the events.
    pub(super) fn take_unheard(&mut self) -> Vec<Window> {
        let unheard = self.windows.iter_mut().filter(|(_, watched)| !watched.heard);
        unheard.map(|(window, watched)| (watched.heard = true, *window).1).collect()
    }

    /// Takes the windows of which the caller must query the facts.
    pub(super) fn take_stale(&mut self) -> Vec<Window> {
        let stale = self.windows.iter_mut().filter(|(_, watched)| !watched.fresh);
        stale.map(|(window, watched)| (watched.fresh = true, *window).1).collect()
    }

    /// Windows with an unknown frame.
    pub(super) fn unframed(&self) -> Vec<Window> {
        self.windows
            .iter()
            .filter(|(_, watched)| watched.frame.is_none())
            .map(|(window, _)| *window)
            .collect()
    }

    pub(super) fn frame(&mut self, window: Window, frame: Window) {
        self.windows.entry(window).and_modify(|watched| watched.frame = Some(frame));
        self.focus_due = true;
    }

    /// Frames of those windows that still exist.
    pub(super) fn frames_of(&self, windows: &[Window]) -> Vec<Window> {
        windows.iter().filter_map(|window| self.windows.get(window)?.frame).collect()
    }

    /// Stores the facts; a window without any is destroyed.
    pub(super) fn learn(&mut self, window: Window, facts: Option<Facts>) {
        let Some(watched) = self.windows.get_mut(&window) else { return };
        let Some(facts) = facts.filter(|facts| facts.viewable || !watched.adopted) else {
            return self.remove(window);
        };
        let before = watched.facts.as_ref().map_or(0, |facts| facts.excess);
        self.dropped.helpers += u64::from(facts.excess.saturating_sub(before));
        watched.facts = Some(facts);
    }

    /// Marks windows as obscured if their frame is hidden.
    pub(super) fn cover(&mut self, windows: &[Window], hidden: &BTreeSet<Window>) {
        for window in windows {
            if let Some(watched) = self.windows.get_mut(window) {
                watched.obscured = watched.frame.is_some_and(|frame| hidden.contains(&frame));
            }
        }
    }

    /// Returns the followed window that `window` is or frames.
    pub(super) fn at(&self, window: Window) -> Option<Window> {
        if self.windows.contains_key(&window) {
            return Some(window);
        }
        self.windows.iter().find(|(_, watched)| watched.frame == Some(window)).map(|(own, _)| *own)
    }

    pub(super) fn attend(&mut self, keyboard: Option<Window>, pointer: Option<Window>) {
        (self.keyboard.now, self.pointer.now) = (keyboard, pointer);
    }

    /// Returns the differences from the last report, which this one replaces.
    pub(super) fn report(&mut self) -> Vec<AttentionChange> {
        let mut changes: Vec<AttentionChange> = self
            .windows
            .iter_mut()
            .filter_map(|(window, watched)| watched.change(*window))
            .map(AttentionChange::Window)
            .collect();
        changes.extend(self.keyboard.change(&self.windows).map(AttentionChange::Keyboard));
        changes.extend(self.pointer.change(&self.windows).map(AttentionChange::Pointer));
        changes.extend(std::mem::take(&mut self.gone).into_keys().map(AttentionChange::Gone));
        changes
    }
}

impl Watched {
    /// Returns its state, if known and not yet reported.
    fn change(&mut self, window: Window) -> Option<WindowState> {
        let facts = self.facts.as_ref()?;
        let state = WindowState {
            window,
            owner: facts.owner,
            helpers: facts.helpers.clone(),
            visible: facts.viewable && !facts.iconic && !self.obscured,
            iconic: facts.iconic,
        };
        if self.reported.as_ref() == Some(&state) {
            return None;
        }
        self.reported = Some(state.clone());
        Some(state)
    }
}

impl ReportedFocus {
    /// Returns the focus if it was not reported; waits while the window itself has not been
    /// reported.
    fn change(&mut self, windows: &BTreeMap<Window, Watched>) -> Option<Option<Window>> {
        let watched = self.now.and_then(|window| windows.get(&window));
        let now = self.now.filter(|_| watched.is_some());
        let waits = watched.is_some_and(|watched| watched.reported.is_none());
        if waits || self.reported == Some(now) {
            return None;
        }
        self.reported = Some(now);
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use x11rb::protocol::xproto::DestroyNotifyEvent;

    const ROOT: Window = 1;

    fn facts(viewable: bool) -> Facts {
        Facts { owner: None, helpers: Vec::new(), excess: 0, viewable, iconic: false }
    }

    /// A display without a manager, with all windows known and reported.
    fn view(windows: impl IntoIterator<Item = Window>) -> AttentionView {
        let atoms = Atoms {
            active: 10,
            clients: 11,
            supporting: 12,
            compositor: 13,
            pid: 14,
            state: 15,
            set: 16,
        };
        let mut view = AttentionView::new(ROOT, atoms);
        assert!(view.take_listing_due());
        view.relist(None, Listing { windows: windows.into_iter().collect(), ..Listing::default() });
        answer(&mut view);
        view.report();
        view
    }

    fn answer(view: &mut AttentionView) {
        view.take_unheard();
        view.unframed().into_iter().for_each(|window| view.frame(window, window));
        view.take_stale().into_iter().for_each(|window| view.learn(window, Some(facts(true))));
        view.take_focus_due();
    }

    fn focus_in(window: Window, mode: NotifyMode, detail: NotifyDetail) -> Event {
        Event::FocusIn(FocusInEvent { response_type: 9, detail, sequence: 0, event: window, mode })
    }

    fn mapped(window: Window) -> Event {
        let override_redirect = false;
        Event::MapNotify(MapNotifyEvent {
            response_type: 19,
            sequence: 0,
            event: ROOT,
            window,
            override_redirect,
        })
    }

    fn destroyed(window: Window) -> Event {
        Event::DestroyNotify(DestroyNotifyEvent {
            response_type: 17,
            sequence: 0,
            event: ROOT,
            window,
        })
    }

    fn recreate(view: &mut AttentionView, window: Window) {
        view.handle(&destroyed(window));
        view.handle(&mapped(window));
    }

    #[test]
    fn an_unambiguous_focus_event_needs_no_query() {
        let mut view = view([5, 6]);
        view.handle(&focus_in(6, NotifyMode::NORMAL, NotifyDetail::NONLINEAR));
        assert!(view.settled() && view.has_switched());
        assert_eq!(view.report(), [AttentionChange::Keyboard(Some(6))]);
        for (mode, detail) in [
            (NotifyMode::GRAB, NotifyDetail::NONLINEAR),
            (NotifyMode::NORMAL, NotifyDetail::POINTER),
        ] {
            view.handle(&focus_in(5, mode, detail));
            assert!(view.take_focus_due() && !view.has_switched());
        }
        view.handle(&focus_in(7, NotifyMode::NORMAL, NotifyDetail::NONLINEAR));
        assert!(view.take_focus_due());
        assert_eq!(view.report(), []);
    }

    #[test]
    fn a_recreated_window_is_reported_only_if_it_differs() {
        let mut view = view([5]);
        recreate(&mut view, 5);
        assert_eq!(view.report(), []);
        answer(&mut view);
        assert_eq!(view.report(), []);
        recreate(&mut view, 5);
        view.take_stale();
        view.learn(5, Some(facts(false)));
        assert!(matches!(&view.report()[..], [AttentionChange::Window(state)] if !state.visible));
        recreate(&mut view, 5);
        view.handle(&destroyed(5));
        assert_eq!(view.report(), [AttentionChange::Gone(5)]);
    }

    #[test]
    fn a_focus_waits_for_its_window() {
        let mut view = view([5]);
        view.adopt(7);
        view.attend(Some(7), None);
        assert_eq!(view.report(), []);
        answer(&mut view);
        let changes = view.report();
        assert!(matches!(&changes[0], AttentionChange::Window(state) if state.window == 7));
        assert_eq!(changes[1..], [AttentionChange::Keyboard(Some(7))]);
    }

    #[test]
    fn room_is_made_for_the_keyboard_and_only_for_it() {
        let mut view = view(2..WINDOWS_MAX as Window + 2);
        let last = WINDOWS_MAX as Window + 1;
        view.attend(Some(last), None);
        view.handle(&mapped(1000));
        assert_eq!(
            (view.windows.len(), view.dropped().windows, view.at(1000)),
            (WINDOWS_MAX, 1, None)
        );
        view.adopt(1000);
        assert_eq!(
            (view.windows.len(), view.at(1000), view.at(last)),
            (WINDOWS_MAX, Some(1000), Some(last))
        );
        assert_eq!((view.dropped().windows, view.at(last - 1)), (2, None));
    }
}
