// SPDX-License-Identifier: BSD-2-Clause
// A program with known waits, as waits.h describes them: in what Rust's standard library offers, whose locks are futexes of
// its own.
use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

extern "C" {
    fn alarm(seconds: u32) -> u32;
    fn sigemptyset(set: *mut u64) -> i32;
    fn sigaddset(set: *mut u64, sig: i32) -> i32;
    fn sigprocmask(how: i32, set: *const u64, old: *mut u64) -> i32;
    fn sigwait(set: *const u64, sig: *mut i32) -> i32;
    fn pause() -> i32;
}
const SIGUSR1: i32 = 10;

// std::hint::black_box is there from Rust 1.66 on
#[inline(always)]
fn no_tail_call() {
    unsafe { std::arch::asm!("") }
}

struct Turns {
    since: Instant,
    open: AtomicU64,
    started: AtomicU64,
    done: AtomicU64,
    sleeps: AtomicU64,
    from: AtomicU64,
    until: AtomicU64,
    ready: AtomicBool,
    held: RwLock<u64>,
    lock: Mutex<u64>,
    told: Mutex<bool>,
    cond: Condvar,
}

impl Turns {
    fn now(&self) -> u64 {
        self.since.elapsed().as_nanos() as u64
    }
}

fn nap() {
    thread::sleep(Duration::from_micros(30));
}

// How often a thread has gone to sleep: it has left its CPU by then, which its state does not tell.
fn sleeps(thread: &str) -> u64 {
    let text = fs::read_to_string(format!("{thread}/status")).unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

#[inline(never)]
fn waiter_rust_mutex(t: &Turns) -> u64 {
    let mut guard = t.lock.lock().unwrap();
    *guard += 1;
    *guard
}

#[inline(never)]
fn holder_rust_mutex(guard: std::sync::MutexGuard<u64>) {
    drop(guard);
    no_tail_call();
}

#[inline(never)]
fn waiter_rust_rwlock(t: &Turns) -> u64 {
    *t.held.read().unwrap()
}

#[inline(never)]
fn holder_rust_rwlock(guard: std::sync::RwLockWriteGuard<u64>) {
    drop(guard);
    no_tail_call();
}

#[inline(never)]
fn waiter_rust_cond(t: &Turns) -> u64 {
    let mut guard = t.told.lock().unwrap();
    while !*guard {
        guard = t.cond.wait(guard).unwrap();
    }
    *guard = false;
    1
}

#[inline(never)]
fn holder_rust_cond(t: &Turns) {
    *t.told.lock().unwrap() = true;
    t.cond.notify_one();
    no_tail_call();
}

fn run(mode: &str, n: u64, hold: u64) -> String {
    let t = Arc::new(Turns {
        since: Instant::now(),
        open: AtomicU64::new(0),
        started: AtomicU64::new(0),
        done: AtomicU64::new(0),
        sleeps: AtomicU64::new(0),
        from: AtomicU64::new(0),
        until: AtomicU64::new(0),
        ready: AtomicBool::new(false),
        held: RwLock::new(0),
        lock: Mutex::new(0),
        told: Mutex::new(false),
        cond: Condvar::new(),
    });
    let path = Arc::new(Mutex::new(String::new()));
    let (u, p, m) = (t.clone(), path.clone(), mode.to_string());
    thread::Builder::new()
        .name(format!("w {mode}"))
        .spawn(move || {
            *p.lock().unwrap() = format!("/proc/{}", fs::read_link("/proc/thread-self").unwrap().display());
            u.ready.store(true, SeqCst);
            for round in 1..=n {
                while u.open.load(SeqCst) != round {
                    nap();
                }
                u.from.store(u.now(), SeqCst);
                u.sleeps.store(sleeps("/proc/thread-self"), SeqCst);
                u.started.store(round, SeqCst);
                match m.as_str() {
                    "rust_mutex" => waiter_rust_mutex(&u),
                    "rust_rwlock" => waiter_rust_rwlock(&u),
                    _ => waiter_rust_cond(&u),
                };
                u.until.store(u.now(), SeqCst);
                u.done.store(round, SeqCst);
            }
            loop {
                thread::sleep(Duration::from_secs(1000));
            }
        })
        .unwrap();
    let sums = Arc::new(Mutex::new((0u64, 0u64, 0u64)));
    let over = Arc::new(AtomicBool::new(false));
    let (u, s, o, m) = (t.clone(), sums.clone(), over.clone(), mode.to_string());
    thread::Builder::new()
        .name(format!("h {mode}"))
        .spawn(move || {
            while !u.ready.load(SeqCst) {
                nap();
            }
            let waiter = path.lock().unwrap().clone();
            let mut sum = (0, 0, 0);
            for round in 1..=n {
                let lock = (m == "rust_mutex").then(|| u.lock.lock().unwrap());
                let write = (m == "rust_rwlock").then(|| u.held.write().unwrap());
                u.open.store(round, SeqCst);
                while u.started.load(SeqCst) != round || sleeps(&waiter) <= u.sleeps.load(SeqCst) {
                    nap();
                }
                let seen = u.now();
                thread::sleep(Duration::from_micros(hold));
                let release = u.now();
                match (lock, write) {
                    (Some(guard), _) => holder_rust_mutex(guard),
                    (_, Some(guard)) => holder_rust_rwlock(guard),
                    _ => holder_rust_cond(&u),
                }
                let released = u.now();
                while u.done.load(SeqCst) != round {
                    nap();
                }
                let from = u.from.load(SeqCst);
                sum = (sum.0 + release - from, sum.1 + release - seen, sum.2 + released - from);
            }
            *s.lock().unwrap() = sum;
            o.store(true, SeqCst);
            loop {
                thread::sleep(Duration::from_secs(1000));
            }
        })
        .unwrap();
    while !over.load(SeqCst) {
        nap();
    }
    let (ns, low, high) = *sums.lock().unwrap();
    let side = |s: &str| {
        format!(
            "{{\"mode\":\"{mode}\",\"side\":\"{s}\",\"frames\":[\"{s}_{mode}\"],\"thread\":\"{} {mode}\",\
             \"count\":{n},\"ns\":{ns},\"low\":{low},\"high\":{high},\"woken\":\"\"}}",
            &s[..1]
        )
    };
    side("waiter") + "," + &side("holder")
}

fn say(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).unwrap();
    std::io::stdout().flush().unwrap();
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |name: &str, otherwise: u64| {
        args.iter().find_map(|a| a.strip_prefix(&format!("{name}="))).map_or(otherwise, |v| v.parse().unwrap())
    };
    let (mut set, mut sig) = ([0u64; 16], 0);
    unsafe {
        alarm(args[1].parse().unwrap());
        sigemptyset(set.as_mut_ptr());
        sigaddset(set.as_mut_ptr(), SIGUSR1);
        sigprocmask(0, set.as_ptr(), std::ptr::null_mut());
    }
    say("ready\n");
    if !args.iter().any(|a| a == "now") {
        unsafe { sigwait(set.as_ptr(), &mut sig) };
    }
    let modes = ["rust_mutex", "rust_rwlock", "rust_cond"];
    let wanted = modes.iter().filter(|m| args[2] == "all" || args[2].split(',').any(|w| w == **m));
    let sides: Vec<String> = wanted.map(|m| run(m, number("n", 40), number("hold", 2000))).collect();
    say(&format!("{{\"waits\":[{}]}}\n", sides.join(",")));
    while !args.iter().any(|a| a == "exit") {
        unsafe { pause() };
    }
}
