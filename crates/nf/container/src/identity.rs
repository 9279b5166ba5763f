//! User ids of a container: what they are inside, and which of the machine's they are.

/// The distance from an NF's user id to the one that its container's user 0 is.
const TO_ROOT: u32 = 1_000_000_000;

/// The user ids that an NF has, each of them a group id, too. No other NF of this machine has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ids {
    /// What the NF runs as.
    pub user: u32,
    /// What its container's user 0 is, where the NF is another user there.
    root: u32,
}

impl Ids {
    /// Of an NF that runs as that user.
    pub fn new(user: u32) -> Ids {
        Ids { user, root: user + TO_ROOT }
    }

    /// Which ids there are inside, each with the machine's: that of the NF, and 0, which a runtime sets up as.
    pub fn mapped(self, inside: u32) -> Vec<(u32, u32)> {
        if inside == 0 { vec![(0, self.user)] } else { vec![(0, self.root), (inside, self.user)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_nf_has_its_own_user_whatever_it_is_inside() {
        let ids = Ids::new(1_000_000_007);
        assert_eq!(ids.mapped(0), [(0, 1_000_000_007)]);
        assert_eq!(ids.mapped(5), [(0, 2_000_000_007), (5, 1_000_000_007)]);
    }
}
