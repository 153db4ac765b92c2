//! Files that anybody may have written, through the reader that looks at them before any code
//! runs: whatever they hold, the answer is a manifest or a reason, in one process. The same
//! function is a fuzz target: `tests/fuzz`.

use atomic_extensions::read_manifest;
use atomic_tests::tree::repo;

/// The same numbers each time: a fault is found again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % below.max(1)
    }
    fn byte(&mut self) -> u8 {
        u8::try_from(self.roll(256)).unwrap()
    }
}

const FILES: usize = 10_000;

#[test]
fn ten_thousand_random_files_crash_no_reader_of_manifests() {
    let golden = std::fs::read(repo().join("tests/golden/1.0/libgolden.so")).unwrap();
    assert!(read_manifest(&golden).is_ok());
    let mut dice = Dice(0x5eed);
    let mut damaged = golden.clone();
    let (mut read, mut refused) = (0, 0);
    // Where an ELF file says what is where: its header, and the table of sections at its end.
    let table = usize::try_from(u64::from_le_bytes(golden[0x28..0x30].try_into().unwrap())).unwrap();
    let magic = atomic_plugin_api::manifest::MAGIC;
    let manifests: Vec<usize> = (0..golden.len() - 8).filter(|at| golden[*at..].starts_with(magic)).collect();
    for n in 0..FILES {
        let answer = match n % 4 {
            // Noise, with the first bytes of a library now and then.
            0 => {
                let mut noise: Vec<u8> = (0..dice.roll(4096)).map(|_| dice.byte()).collect();
                if dice.roll(2) == 0 && noise.len() > 64 {
                    noise[..64].copy_from_slice(&golden[..64]);
                }
                read_manifest(&noise)
            }
            // Cut off anywhere.
            1 => read_manifest(&golden[..dice.roll(golden.len())]),
            // A few bytes changed where they matter.
            _ => {
                let starts: Vec<(usize, usize)> = [(0, 64), (table, golden.len() - table)]
                    .into_iter()
                    .chain(manifests.iter().map(|at| (*at, 512.min(golden.len() - at))))
                    .collect();
                let (from, len) = starts[dice.roll(starts.len())];
                let changed: Vec<usize> = (0..=dice.roll(16)).map(|_| from + dice.roll(len)).collect();
                for at in &changed {
                    damaged[*at] = dice.byte();
                }
                let answer = read_manifest(&damaged);
                for at in &changed {
                    damaged[*at] = golden[*at];
                }
                answer
            }
        };
        match answer {
            Ok(_) => read += 1,
            Err(why) => {
                assert!(!why.sentence().is_empty() && why.code().starts_with("extension::"));
                refused += 1;
            }
        }
    }
    assert_eq!(read + refused, FILES);
    assert!(refused > FILES / 2, "the damage is real: {refused} refused");
}
