//! MT19937 as CPython's `random.Random` has it: equal seeds give equal draws in both, so a run
//! heats the same rows whichever program generates its inputs.
//!
//! Source: Matsumoto and Nishimura, "Mersenne Twister" (1998), and their `mt19937ar`.

const N: usize = 624;
const M: usize = 397;

/// One stream of pseudo-random numbers.
pub struct Mersenne {
    state: [u32; N],
    next: usize,
}

impl Mersenne {
    /// A stream from a seed's 32-bit words, the lowest first (`init_by_array`).
    pub fn new(seed: &[u32]) -> Self {
        let mut state = [0u32; N];
        state[0] = 19_650_218;
        for i in 1..N {
            let before = state[i - 1];
            state[i] = 1_812_433_253u32
                .wrapping_mul(before ^ (before >> 30))
                .wrapping_add(i as u32);
        }
        let (mut i, mut j) = (1, 0);
        for _ in 0..N.max(seed.len()) {
            let mixed = state[i - 1] ^ (state[i - 1] >> 30);
            state[i] = (state[i] ^ mixed.wrapping_mul(1_664_525))
                .wrapping_add(seed[j])
                .wrapping_add(j as u32);
            j = (j + 1) % seed.len();
            i = Self::following(&mut state, i);
        }
        for _ in 0..N - 1 {
            let mixed = state[i - 1] ^ (state[i - 1] >> 30);
            state[i] = (state[i] ^ mixed.wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
            i = Self::following(&mut state, i);
        }
        state[0] = 0x8000_0000;
        Self { state, next: N }
    }

    fn following(state: &mut [u32; N], i: usize) -> usize {
        if i + 1 < N {
            return i + 1;
        }
        state[0] = state[N - 1];
        1
    }

    fn word(&mut self) -> u32 {
        if self.next == N {
            self.refill();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn refill(&mut self) {
        for i in 0..N {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
            let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ (y >> 1) ^ odd;
        }
        self.next = 0;
    }

    /// `random()`: a float in [0, 1) with 53 random bits.
    pub fn random(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// `int(random() * high)`: 0 to `high` - 1.
    pub fn below(&mut self, high: u32) -> u32 {
        (self.random() * f64::from(high)) as u32
    }

    /// `shuffle()`: in place.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let count = last as u32 + 1;
            let unused_bits = count.leading_zeros();
            let chosen = loop {
                let bits = self.word() >> unused_bits;
                if bits < count {
                    break bits as usize;
                }
            };
            items.swap(last, chosen);
        }
    }

    /// `expovariate()`: negative exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.random()).ln() * mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The first draws of Python's `random.Random(42)`.
    #[test]
    fn draws_what_python_draws() {
        let mut stream = Mersenne::new(&[42]);
        assert_eq!(stream.random(), 0.639_426_798_457_883_7);
        assert_eq!(stream.random(), 0.025_010_755_222_666_936);
    }

    #[test]
    fn shuffles_as_python_shuffles() {
        let mut items: Vec<u32> = (0..10).collect();
        Mersenne::new(&[42]).shuffle(&mut items);
        assert_eq!(items, [7, 3, 2, 8, 5, 6, 9, 4, 0, 1]);
    }
}
