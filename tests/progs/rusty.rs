// SPDX-License-Identifier: BSD-2-Clause
// Rust names: main, rusty::outer, rusty::shapes::Circle::spin, below the frames of the Rust runtime.
use std::hint::black_box;
use std::io::Write;

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
                    n = std::hint::black_box(n + 1);
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
    black_box(circle.spin()) + 1
}

fn main() {
    println!("ready");
    std::io::stdout().flush().unwrap();
    println!("{}", outer(1));
}
