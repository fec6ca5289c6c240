//! A tour that takes every operation in every standing.

use std::collections::{HashMap, VecDeque};

use crate::op::Op;
use crate::standing::Standing;

/// What is known of the ways between standings.
pub(crate) struct Tour {
    ops: Vec<Op>,
    /// Only orders of so many operations.
    deep: usize,
    numbers: HashMap<Standing, usize>,
    places: Vec<Place>,
    here: usize,
    /// Whether the watchers stand as in the place, or each where the other does there.
    facing: Facing,
    /// The way to the next place where something has not been tried.
    ahead: VecDeque<usize>,
    steps: u64,
}

/// How the watchers stand towards a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Facing {
    AsThere,
    Turned,
}

impl Facing {
    /// An operation there, seen from here, and the other way round.
    fn seen(self, op: Op) -> Op {
        match self {
            Self::AsThere => op,
            Self::Turned => op.turned(),
        }
    }
}

/// The one of the two orders in which two watchers can stand that has a place.
fn placed(standing: Standing) -> (Standing, Facing) {
    let [a, b] = standing;
    if a <= b {
        ([a, b], Facing::AsThere)
    } else {
        ([b, a], Facing::Turned)
    }
}

/// The place where the tour started.
const START: usize = 0;

/// What a tour does next.
pub(crate) enum Next {
    Take(Op),
    /// Begin anew: there is no way back to what has not been tried.
    StartAnew,
    /// Everything has been tried everywhere.
    Done,
}

/// One standing.
struct Place {
    /// How many operations lead to it from the start, at the least.
    deep: usize,
    /// Where each operation leads, once it was tried.
    ways: Vec<Option<usize>>,
}

/// How far a tour went.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    /// How many standings were seen.
    #[expect(dead_code, reason = "read by whoever reads what a tour prints")]
    standings: usize,
    /// How many steps were taken.
    #[expect(dead_code, reason = "read by whoever reads what a tour prints")]
    steps: u64,
    /// How many operations lead to the farthest of them, at the least.
    pub(crate) deepest: usize,
}

impl Tour {
    /// A tour of all orders of at most `deep` of these operations.
    pub(crate) fn new(start: Standing, ops: Vec<Op>, deep: usize) -> Self {
        let mut tour = Self {
            ops,
            deep,
            numbers: HashMap::new(),
            places: Vec::new(),
            here: START,
            facing: Facing::AsThere,
            ahead: VecDeque::new(),
            steps: 0,
        };
        (_, tour.facing) = tour.number(start, 0);
        tour
    }

    /// What to do next.
    pub(crate) fn next(&mut self) -> Next {
        if self.ahead.is_empty() {
            match self.way_to_the_nearest_untried() {
                Some(way) => self.ahead = way,
                // From the start everything is reached that was ever seen.
                None if self.here != START => return Next::StartAnew,
                None => return Next::Done,
            }
        }
        match self.ahead.pop_front() {
            Some(op) => Next::Take(self.facing.seen(self.ops[op])),
            None => Next::Done,
        }
    }

    /// Notes that all has begun anew, with this standing.
    pub(crate) fn started_anew(&mut self, standing: &Standing) {
        let (there, facing) = placed(standing.clone());
        assert_eq!(self.numbers.get(&there), Some(&START), "{standing:#?}");
        self.here = START;
        self.facing = facing;
    }

    /// Notes where an operation led. The same operation in the same standing must always
    /// lead to the same.
    pub(crate) fn took(&mut self, op: Op, to: Standing) {
        let op = self.facing.seen(op);
        let at = self.ops.iter().position(|known| *known == op);
        let at = at.expect("an operation of this tour");
        let (to, facing) = self.number(to, self.places[self.here].deep + 1);
        let way = &mut self.places[self.here].ways[at];
        let before = *way.get_or_insert(to);
        assert!(
            before == to,
            "{op:?} has led to {:#?} before, and leads to {:#?}",
            self.standing(before),
            self.standing(to)
        );
        self.come_nearer(self.here);
        (self.here, self.facing) = (to, facing);
        self.steps += 1;
    }

    pub(crate) fn summary(&self) -> Summary {
        let deep = self.places.iter().map(|place| place.deep);
        Summary {
            standings: self.places.len(),
            steps: self.steps,
            deepest: deep.max().unwrap_or(0),
        }
    }

    fn standing(&self, number: usize) -> Option<&Standing> {
        let numbered = self.numbers.iter().find(|(_, known)| **known == number);
        numbered.map(|(standing, _)| standing)
    }

    fn number(&mut self, standing: Standing, deep: usize) -> (usize, Facing) {
        let (standing, facing) = placed(standing);
        let next = self.places.len();
        let number = *self.numbers.entry(standing).or_insert(next);
        if number == next {
            self.places.push(Place {
                deep,
                ways: vec![None; self.ops.len()],
            });
        }
        (number, facing)
    }

    /// A way out of `from` may be a shorter one to what lies behind it.
    fn come_nearer(&mut self, from: usize) {
        let mut changed = vec![from];
        while let Some(place) = changed.pop() {
            let deep = self.places[place].deep + 1;
            for to in self.places[place].ways.clone().into_iter().flatten() {
                if self.places[to].deep > deep {
                    self.places[to].deep = deep;
                    changed.push(to);
                }
            }
        }
    }

    /// The first operation that has not been tried in a place that counts.
    fn untried(&self, place: usize) -> Option<usize> {
        let place = &self.places[place];
        if place.deep >= self.deep {
            return None;
        }
        place.ways.iter().position(Option::is_none)
    }

    /// The operations that lead to the nearest place where something has not been tried, and
    /// what has not been tried there.
    fn way_to_the_nearest_untried(&self) -> Option<VecDeque<usize>> {
        let mut came_by: Vec<Option<(usize, usize)>> = vec![None; self.places.len()];
        let mut queue = VecDeque::from([self.here]);
        while let Some(place) = queue.pop_front() {
            if let Some(op) = self.untried(place) {
                let mut way = VecDeque::from([op]);
                let mut at = place;
                while at != self.here {
                    let (before, op) = came_by[at]?;
                    way.push_front(op);
                    at = before;
                }
                return Some(way);
            }
            for (op, to) in self.places[place].ways.iter().enumerate() {
                if let Some(to) = *to
                    && to != self.here
                    && came_by[to].is_none()
                {
                    came_by[to] = Some((place, op));
                    queue.push_back(to);
                }
            }
        }
        None
    }
}
