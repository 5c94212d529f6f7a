// SPDX-License-Identifier: MIT OR Apache-2.0
//! An application or a terminal on the machine: its keys, and what it draws.

use super::{
    APP, DRAW_TEXT, FAKE_KEY, INJECTION, INJECTOR, KEY_PRESS, Machinery, SERVER, SHELL, TO_SHELL,
    TO_TERMINAL, WINDOW, WORKER,
};

impl Machinery {
    /// Creates a machine with an application (pid 200) as well.
    pub fn with_app(name: &str) -> Machinery {
        let mut machine = Machinery::new();
        machine.task(APP, APP, 1, name, 1).cmdline(APP, format!("/usr/bin/{name}").as_bytes());
        machine
    }

    /// A key is injected, the server sends it to the application, and the application wakes up on
    /// CPU 1. It runs from 300 µs after the press on.
    pub fn press(&mut self, us: u64) -> &mut Self {
        self.switch(us, 0, INJECTOR, 1).wake(us + 10, SERVER, INJECTOR);
        self.message(us + 12, INJECTOR, INJECTION, 0, 36, &[FAKE_KEY]);
        self.switch(us + 20, 0, SERVER, 1).message(us + 50, SERVER, INJECTION, 1, 36, &[]);
        self.wake_from(us + 100, APP, SERVER, 0, 1);
        self.message(us + 102, SERVER, WINDOW, 2, 32, &[KEY_PRESS]);
        self.switch(us + 150, 0, 0, 1).switch(us + 200, 1, APP, 0);
        self.message(us + 250, APP, WINDOW, 3, 32, &[])
    }

    /// A key is injected for another application, which draws at once.
    pub fn press_for(&mut self, us: u64, other: u32) -> &mut Self {
        let connection = (other, other);
        self.switch(us, 0, INJECTOR, 1).wake(us + 10, SERVER, INJECTOR);
        self.message(us + 12, INJECTOR, INJECTION, 0, 36, &[FAKE_KEY]);
        self.switch(us + 20, 0, SERVER, 1).message(us + 50, SERVER, INJECTION, 1, 36, &[]);
        self.wake_from(us + 100, other, SERVER, 0, 1);
        self.message(us + 102, SERVER, connection, 2, 32, &[KEY_PRESS]);
        self.switch(us + 150, 0, 0, 1).switch(us + 200, 1, other, 0);
        self.message(us + 250, other, connection, 3, 32, &[]).message(
            us + 302,
            other,
            connection,
            0,
            20,
            &[DRAW_TEXT],
        );
        self.wake(us + 303, SERVER, other).switch(us + 310, 1, 0, 1).switch(us + 350, 0, SERVER, 0);
        self.message(us + 360, SERVER, connection, 1, 20, &[]).switch(us + 500, 0, 0, 1)
    }

    /// The application draws and goes idle, and the server is done 200 µs later.
    pub fn draw(&mut self, us: u64) -> &mut Self {
        self.wake(us, SERVER, APP).message(us + 2, APP, WINDOW, 0, 20, &[DRAW_TEXT]);
        self.switch(us + 10, 1, 0, 1).switch(us + 50, 0, SERVER, 0);
        self.message(us + 60, SERVER, WINDOW, 1, 20, &[]).switch(us + 200, 0, 0, 1)
    }

    /// `count` keys that are answered within a millisecond, a fifth of a second apart, from `from`
    /// on.
    pub fn typing(&mut self, from: u64, count: u64) -> &mut Self {
        for key in 0..count {
            let us = from + key * 200_000;
            self.press(us).draw(us + 600);
        }
        self
    }

    /// A key is injected while the server is busy on CPU 0 until `free`, and then passed on.
    pub fn press_while_busy(&mut self, us: u64, free: u64) -> &mut Self {
        self.switch(us, 1, INJECTOR, 1).message(us + 12, INJECTOR, INJECTION, 0, 36, &[FAKE_KEY]);
        self.switch(us + 20, 1, 0, 1).message(free, SERVER, INJECTION, 1, 36, &[]);
        self.wake_from(free + 100, APP, SERVER, 0, 1).message(
            free + 102,
            SERVER,
            WINDOW,
            2,
            32,
            &[KEY_PRESS],
        );
        self.switch(free + 150, 0, 0, 1).switch(free + 200, 1, APP, 0);
        self.message(free + 250, APP, WINDOW, 3, 32, &[])
    }

    /// The application draws and goes idle; the server receives the drawing only at `taken`.
    pub fn draw_taken_late(&mut self, us: u64, taken: u64) -> &mut Self {
        self.message(us + 2, APP, WINDOW, 0, 20, &[DRAW_TEXT]).switch(us + 10, 1, 0, 1);
        self.wake(taken - 100, SERVER, 950).switch(taken - 50, 0, SERVER, 0);
        self.message(taken, SERVER, WINDOW, 1, 20, &[]).switch(taken + 200, 0, 0, 1)
    }

    /// Creates a machine with a terminal (pid 200), a shell in it, and a kernel worker.
    pub fn with_terminal() -> Machinery {
        let mut machine = Machinery::with_app("xterm");
        machine.task(SHELL, SHELL, APP, "bash", 1).task(WORKER, WORKER, 2, "kworker/u8:1", 0x402);
        machine
    }

    /// After a press the terminal writes to its shell and goes idle; the shell runs on CPU 1 from
    /// 700 µs after the press on.
    pub fn reach_shell(&mut self, us: u64) -> &mut Self {
        self.tty(us + 300, APP, TO_SHELL, 0).wake_from(us + 301, WORKER, APP, 0, 1);
        self.switch(us + 400, 1, WORKER, 1);
        self.tty(us + 450, WORKER, TO_SHELL, 1).wake_from(us + 460, SHELL, WORKER, 0, 1);
        self.switch(us + 700, 1, SHELL, 0x402)
    }

    /// The shell writes its echo, and the terminal draws it.
    pub fn echo(&mut self, us: u64) -> &mut Self {
        self.tty(us, SHELL, TO_TERMINAL, 0).wake_from(us + 1, WORKER, SHELL, 0, 1);
        self.switch(us + 50, 1, WORKER, 1);
        self.tty(us + 60, WORKER, TO_TERMINAL, 1).wake_from(us + 70, APP, WORKER, 0, 1);
        self.switch(us + 100, 1, APP, 0x402);
        self.draw(us + 200)
    }

    /// Another key while the application is busy; it receives the event at `taken`.
    pub fn press_more(&mut self, us: u64, taken: u64) -> &mut Self {
        self.switch(us, 0, INJECTOR, 1).wake(us + 10, SERVER, INJECTOR);
        self.message(us + 12, INJECTOR, INJECTION, 0, 36, &[FAKE_KEY]);
        self.switch(us + 20, 0, SERVER, 1).message(us + 30, SERVER, INJECTION, 1, 36, &[]);
        self.message(us + 40, SERVER, WINDOW, 2, 32, &[KEY_PRESS]).switch(us + 45, 0, 0, 1);
        self.message(taken, APP, WINDOW, 3, 32, &[])
    }
}
