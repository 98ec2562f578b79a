// SPDX-License-Identifier: BSD-2-Clause
// Rust names: main, rusty::outer, rusty::shapes::Circle::spin, below the frames of the Rust runtime.
use std::io::Write;

// std::hint::black_box is there from Rust 1.66 on
#[inline(always)]
fn opaque(x: u64) -> u64 {
    unsafe { std::ptr::read_volatile(&x) }
}

mod shapes {
    pub struct Circle {
        pub radius: u64,
    }

    impl Circle {
        #[inline(never)]
        pub fn spin(&self) -> u64 {
            let mut n = self.radius;
            let start = std::time::Instant::now();
            loop {
                for _ in 0..10_000_000u64 {
                    n = super::opaque(n + 1);
                }
                if start.elapsed().as_secs() > 120 {
                    return n;
                }
            }
        }
    }
}

#[inline(never)]
fn outer(radius: u64) -> u64 {
    let circle = shapes::Circle { radius };
    opaque(circle.spin()) + 1
}

fn main() {
    println!("ready");
    std::io::stdout().flush().unwrap();
    println!("{}", outer(1));
}
