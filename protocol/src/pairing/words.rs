//! The words in which two people compare what their machines saw.

/// The words: 256, so that each stands for one byte. No two differ in a single letter, and
/// each is a thing that can be told over a telephone.
#[rustfmt::skip]
pub const WORDS: [&str; 256] = [
    "acorn", "actor", "album", "almond", "amber", "anchor", "angel", "apple", "april", "apron",
    "arrow", "aspen", "atlas", "attic", "autumn", "badge", "bagel", "bamboo", "banana", "banjo",
    "barrel", "basket", "beacon", "beaver", "bicycle", "birch", "biscuit", "blanket", "blossom",
    "bonfire", "bottle", "breeze", "brick", "bridge", "bronze", "bubble", "bucket", "buffalo",
    "butter", "button", "cabin", "cactus", "camel", "camera", "candle", "canyon", "carpet",
    "castle", "cavern", "cedar", "cello", "chalk", "cherry", "chimney", "cinema", "circus",
    "citrus", "clover", "cobalt", "coconut", "comet", "compass", "copper", "coral", "cotton",
    "coyote", "cradle", "crayon", "cricket", "crystal", "cushion", "cypress", "dagger", "daisy",
    "dancer", "denim", "desert", "diamond", "dinner", "dolphin", "donkey", "dragon", "drum",
    "eagle", "easel", "echo", "eclipse", "elbow", "elephant", "emerald", "emperor", "engine",
    "envelope", "fabric", "falcon", "farmer", "feather", "fender", "fiddle", "flannel", "flute",
    "forest", "fossil", "fountain", "freckle", "frost", "galaxy", "garden", "garlic", "gazelle",
    "geyser", "ginger", "giraffe", "glacier", "goblet", "golf", "granite", "grape", "guitar",
    "hammer", "harbor", "harvest", "hazel", "hedgehog", "helmet", "hickory", "honey", "horizon",
    "hotel", "hunter", "husky", "igloo", "indigo", "iris", "island", "ivory", "jacket", "jaguar",
    "jasmine", "jelly", "jigsaw", "jungle", "juniper", "kayak", "kettle", "kidney", "kitchen",
    "koala", "ladder", "lagoon", "lantern", "laurel", "lemon", "leopard", "library", "lilac",
    "linen", "lizard", "lobster", "lotus", "lunch", "lynx", "magnet", "mango", "maple", "marble",
    "meadow", "melon", "mercury", "mirror", "mitten", "monsoon", "mosaic", "muffin", "museum",
    "mustard", "napkin", "nectar", "needle", "nickel", "novel", "nutmeg", "oasis", "ocean",
    "octopus", "olive", "onion", "opal", "orange", "orchid", "otter", "oxygen", "oyster",
    "paddle", "palace", "panda", "parrot", "pebble", "pencil", "pepper", "piano", "picnic",
    "pigeon", "pillow", "pirate", "planet", "plaster", "plum", "pocket", "pony", "popcorn",
    "prairie", "puzzle", "pyramid", "quartz", "quilt", "rabbit", "raccoon", "radar", "raven",
    "ribbon", "robot", "saffron", "sailor", "salmon", "sandal", "satin", "scarf", "shadow",
    "silver", "skate", "sparrow", "sphinx", "spoon", "squirrel", "statue", "sugar", "sunset",
    "tadpole", "temple", "thunder", "ticket", "tiger", "timber", "tomato", "trumpet", "tulip",
    "tunnel", "turtle", "umbrella", "valley", "vanilla", "velvet", "violin", "walnut", "window",
];

/// The number of a word of the list.
pub(super) fn number_of(word: &str) -> Option<u8> {
    let at = WORDS.binary_search(&word).ok()?;
    u8::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True for words of equal length that differ in one letter, or of which one has one
    /// letter more.
    fn are_alike(one: &str, other: &str) -> bool {
        let (short, long) = if one.len() < other.len() {
            (one.as_bytes(), other.as_bytes())
        } else {
            (other.as_bytes(), one.as_bytes())
        };
        match long.len() - short.len() {
            0 => short.iter().zip(long).filter(|(a, b)| a != b).count() < 2,
            1 => (0..long.len()).any(|at| [&long[..at], &long[at + 1..]].concat() == short),
            _ => false,
        }
    }

    #[test]
    fn the_words_are_in_order_plain_and_not_alike() {
        assert!(WORDS.is_sorted());
        for (at, word) in WORDS.iter().enumerate() {
            assert!((4..=9).contains(&word.len()), "{word}");
            assert!(word.bytes().all(|b| b.is_ascii_lowercase()), "{word}");
            for other in &WORDS[..at] {
                assert!(!are_alike(word, other), "{word} and {other}");
            }
            assert_eq!(number_of(word).map(usize::from), Some(at));
        }
        assert!(are_alike("paddle", "saddle") && are_alike("maple", "maples"));
        assert_eq!(number_of("saddle"), None);
    }
}
