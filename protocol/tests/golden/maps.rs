//! Finds the maps in a MessagePack value, so that a test can put a field into one.

/// A map inside an encoded value.
pub(crate) struct MapAt {
    /// Where its header begins.
    pub(crate) header_at: usize,
    /// How many entries it has.
    pub(crate) entries: usize,
    /// How many maps are around it.
    pub(crate) depth: usize,
    content_at: usize,
    end: usize,
}

impl MapAt {
    /// `body` with a field in this map that nobody knows.
    pub(crate) fn with_one_more_field(&self, body: &[u8]) -> Vec<u8> {
        let entries = u16::try_from(self.entries + 1).expect("a small map");
        let [high, low] = entries.to_be_bytes();
        // {"ofALaterVersion": {"a": [true, "b", bytes]}}
        let field = b"\xafofALaterVersion\x81\xa1a\x93\xc3\xa1b\xc4\x02\x00\xff";
        [
            &body[..self.header_at],
            &[0xde, high, low],
            &body[self.content_at..self.end],
            field,
            &body[self.end..],
        ]
        .concat()
    }
}

/// Every map of the one value in `body`.
pub(crate) fn in_body(body: &[u8]) -> Vec<MapAt> {
    let mut walk = Walk {
        body,
        at: 0,
        maps: Vec::new(),
    };
    walk.value(0);
    assert_eq!(walk.at, body.len(), "one whole value");
    walk.maps
}

struct Walk<'a> {
    body: &'a [u8],
    at: usize,
    maps: Vec<MapAt>,
}

impl Walk<'_> {
    fn value(&mut self, depth: usize) {
        let header_at = self.at;
        let byte = self.number(1);
        match byte {
            0x80..=0x8f => self.map(header_at, byte & 0x0f, depth),
            0x90..=0x9f => self.list(byte & 0x0f, depth),
            0xa0..=0xbf => self.at += byte & 0x1f,
            0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => {}
            0xc4 | 0xd9 => self.at += self.number(1),
            0xc5 | 0xda => self.at += self.number(2),
            0xc6 | 0xdb => self.at += self.number(4),
            0xcc | 0xd0 => self.at += 1,
            0xcd | 0xd1 => self.at += 2,
            0xca | 0xce | 0xd2 => self.at += 4,
            0xcb | 0xcf | 0xd3 => self.at += 8,
            0xdc => {
                let entries = self.number(2);
                self.list(entries, depth);
            }
            0xde => {
                let entries = self.number(2);
                self.map(header_at, entries, depth);
            }
            other => panic!("no sample has a value that begins with {other:#x}"),
        }
    }

    fn list(&mut self, entries: usize, depth: usize) {
        for _ in 0..entries {
            self.value(depth);
        }
    }

    fn map(&mut self, header_at: usize, entries: usize, depth: usize) {
        let content_at = self.at;
        for _ in 0..2 * entries {
            self.value(depth + 1);
        }
        self.maps.push(MapAt {
            header_at,
            entries,
            depth,
            content_at,
            end: self.at,
        });
    }

    /// The next `bytes` bytes as a big-endian number.
    fn number(&mut self, bytes: usize) -> usize {
        let end = self.at + bytes;
        let number = self.body[self.at..end]
            .iter()
            .fold(0, |number, byte| number << 8 | usize::from(*byte));
        self.at = end;
        number
    }
}
