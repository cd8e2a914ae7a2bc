# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes, pairs and domains the results name for sure. Pure.

A node is named only by small tests in which everyone else is known to be good, against different partners, and
never after it passed a test of that kind. What passed and failed alike is not bad but flaky.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.fleet import bits
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.options import group_size
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation.state import State

# so many small tests of a node towards others of one relation; then something they share is at fault
RELATION_TESTS = 4
# so many nodes of a domain, or all it has, must fail towards the others before the domain itself is blamed
DOMAIN_SAMPLE = 4
# up to so many nodes, two bad links of one node are likely enough to be the two that are tested
SMALL_FLEET = 24
# mates that a node is tested with before it is told from a domain that is cut off
MATES = 2
UNTESTABLE = -1


class Judgement:
    """What the results prove; groups are bits.

    `bad`: node -> the relation it fails in (any, inside, across). `candidates`: nodes that fail towards other domains,
    where it is not yet seen whether they or their domain are at fault. `uplinks`: domains that fail as a whole towards
    others. `unreached`: domains of which no node ever passed, while no test between others shows whether it is they or
    the way to them. `no_fabric`: nothing works between domains. `flaky`: nodes. `pairs`: pairs that fail together.
    `trunks`: two domains that fail towards each other.
    """

    def __init__(self, state: State):
        self.state, self.fleet, self.options = state, state.fleet, state.options
        # failing groups that lead nowhere further, and why: filled by the search, smallest first
        self.settled: dict[int, str] = {}
        self.group_size = group_size(len(state.fleet), state.options)
        self.paired = self.flaky = self._relation_mask = 0
        self.small = [group for group in sorted(state.fails) if group.bit_count() <= self.options.small]
        self.bad: dict[int, str]
        self.candidates: dict[int, int]
        self.uplinks: list[int]
        self.no_fabric = self._no_fabric()
        self._by_node: dict[int, list[int]] = {}
        for group in self.small:
            for node in bits(group):
                self._by_node.setdefault(node, []).append(group)
        self._one_relation()
        self.flaky = self._flaky()
        if self.flaky:
            # once more without them as witnesses
            self._one_relation()
            self.flaky = self._flaky()
        self.pairs = self._pairs()
        self.paired = union(self.pairs)
        self.trunks = self._trunks()
        self._never_passed()

    def settle(self, group: int, why: str) -> None:
        """A failing group that leads nowhere further: it accounts for those around it, and its nodes may be doubted."""
        self.settled[group] = why
        self._never_passed()

    def accounted(self, group: int) -> bool:
        """Whether something found is enough to make this group fail."""
        if group & self.flaky:
            return True
        for node in bits(group & self.bad_mask):
            relation, mates = self.bad[node], self.fleet.mates[node]
            others = group & ~(1 << node)
            if relation == "any" or (others & mates if relation == "inside" else others & ~mates):
                return True
        if any(group & pair == pair for pair in self.pairs):
            return True
        if any(group & domain and group & ~domain for domain in self.uplinks):
            return True
        if any(group & one and group & other for one, other in self.trunks):
            return True
        # what comes and goes somewhere in a large group is no reason to fail each time
        always = self.state.fails.get(group, 0) >= self.options.repeats and not self.state.passes.get(group)
        return any(
            group & inner == inner
            and not (always and inner != group and why == "intermittent" and inner.bit_count() > 2 * self.group_size)
            for inner, why in self.settled.items()
        )

    def unfollowed(self) -> Iterator[int]:
        """Failing groups, the smaller first, of nodes that each passed elsewhere, while nothing accounts for them."""
        for group in sorted(self.state.fails, key=lambda group: (group.bit_count(), group)):
            if not group & ~self.state.cleared and not self.accounted(group):
                yield group

    def weight(self, group: int) -> int:
        """How often this group, or one around it, failed without another cause."""
        return sum(
            count
            for around, count in self.state.fails.items()
            if around & group == group and not around & ~self.state.cleared and not self.accounted(around)
        )

    def doubtful(self, most: int | None = None) -> int:
        """Nodes of groups, up to a size, in which a fault comes and goes. A large group is too vague to doubt each of
        its nodes, all of which have passed several times by then."""
        most = 2 * self.group_size if most is None else most
        return union(
            group for group, why in self.settled.items() if why == "intermittent" and group.bit_count() <= most
        )

    @property
    def shaky(self) -> int:
        """Nodes that may be the one of a few that comes and goes: no partners, and no evidence, for others."""
        return self.flaky | self.doubtful(self.options.small)

    def conflicts(self, node: int) -> int:
        """Nodes that this one is known to fail with."""
        return self._conflicts.get(node, 0)

    def _find_conflicts(self) -> dict[int, int]:
        loose = [group for group, why in self.settled.items() if why == "unseparated"]
        sides = [(domain, self.fleet.all & ~domain) for domain in self.uplinks] + self.trunks
        against: dict[int, int] = {}
        for one, other in [*sides, *((pair, pair) for pair in (*self.pairs, *loose))]:
            for here, there in ((one, other), (other, one)):
                for node in bits(here):
                    against[node] = (against.get(node, 0) | there) & ~(1 << node)
        return against

    @property
    def good(self) -> int:
        """Nodes that may stand by as partners."""
        return self.state.cleared & ~(self.bad_mask | self.candidate_mask | self.shaky)

    def against(self, node: int) -> list[int]:
        """Small failing tests of a node in which all the others are known to be good."""
        doubted = ~self.state.cleared | self._relation_mask | self.shaky
        return [group for group in self._by_node.get(node, ()) if not group & ~(1 << node) & doubted]

    def strong(self, node: int, group: int) -> bool:
        """Whether the others of a failing test passed a test of the same relation before or since."""
        others = group & ~(1 << node)
        return not others & ~self.state.proven(self.state.relation(node, others))

    def enough(self, node: int, groups: list[int]) -> bool:
        """Enough repeats against enough different partners, with nobody but the node in all of them.

        One test more where two bad links of a good node could be mistaken for it: when partners are in a bad pair
        themselves, and in a small fleet, as far as it has the nodes.
        """
        if sum(self.state.fails[group] for group in groups) < self.options.repeats:
            return False
        if any(group == 1 << node for group in groups):
            return True
        clean = sum(not group & ~(1 << node) & self.paired for group in groups)
        needed = self.options.partners + (clean < self.options.partners or len(self.fleet) <= SMALL_FLEET)
        if clean >= self.options.partners:
            able = self.state.cleared & ~(self._relation_mask | self.flaky | 1 << node)
            needed = min(needed, max(self.options.partners, able.bit_count() // max(self.options.small - 1, 1)))
        return clean > 0 and len(groups) >= needed and common(groups) == 1 << node

    def mates_due(self, node: int) -> int:
        """How many mates a node must still be tested with, before it is told from a domain that is cut off.

        0 when one of its domain passed towards others; UNTESTABLE when a test does not fit into its domain.
        """
        domain = self.fleet.mates[node]
        if domain == 1 << node or domain == self.fleet.all or domain & self.state.across:
            return 0
        mates = self.answering(node)
        if mates.bit_count() < self.options.small - 1:
            return UNTESTABLE
        seen = union(group & mates for group in self._by_node[node] if not group & ~domain)
        return max(min(MATES, mates.bit_count()) - seen.bit_count(), 0)

    def answering(self, node: int) -> int:
        """The mates of a node, without those that give no answer, by themselves or with it."""
        mates = self.fleet.mates[node] & ~(1 << node)
        for group in filter(self.state.gave_up, self.state.silent):
            if group >> node & 1 and group.bit_count() <= self.options.small:
                mates &= ~group
        return mates & ~mask_of(mate for mate in bits(mates) if self.silent(mate))

    def silent(self, node: int) -> bool:
        """Whether a node's own tests ended without an answer too often."""
        state, others = self.state, ~(1 << node)
        count = sum(
            number
            for group, number in state.silent.items()
            if group >> node & 1 and group.bit_count() <= self.options.small and not group & others & ~state.cleared
        )
        return count > self.options.error_retries

    def _no_fabric(self) -> bool:
        """Nobody ever passed towards another domain, though several pairs of nodes and of domains were tried."""
        if self.state.across:
            return False
        apart = [group for group in self.small if self.fleet.spans(group) and not group & ~self.state.cleared]
        ways = {tuple(sorted({self.fleet.mates[node] for node in bits(group)})) for group in apart}
        count = len(self.fleet.blocks)
        return len(apart) >= 2 * RELATION_TESTS and len(ways) >= min(count * (count - 1) // 2, count)

    def _one_relation(self) -> None:
        """Nodes that passed, but never in the relation they fail in: a NIC that only other domains' nodes need."""
        state = self.state
        found: dict[int, int] = {}
        self.bad, self.uplinks = {}, []
        for relation in ("across", "inside"):
            proven = state.proven(relation)
            witnesses = proven & ~self.flaky
            for node, groups in self._by_node.items():
                if not state.cleared >> node & 1 or proven >> node & 1:
                    continue
                groups = [
                    group
                    for group in groups
                    if state.relation(node, others := group & ~(1 << node)) == relation and not others & ~witnesses
                ]
                if groups and self.enough(node, groups):
                    if relation == "inside":
                        self.bad[node] = relation
                    else:
                        found[node] = self.fleet.mates[node]
        self.candidates = found
        self._decide_domains()
        self.bad_mask, self.candidate_mask = mask_of(self.bad), mask_of(self.candidates)
        self._relation_mask = self.bad_mask | self.candidate_mask

    def _decide_domains(self) -> None:
        """Nodes that fail towards other domains: they are bad when a mate does not, else their domain is cut off."""
        bad = mask_of(self.bad)
        for domain in sorted(set(self.candidates.values())):
            own = [node for node, mates in self.candidates.items() if mates == domain]
            able = domain & ~bad & ~mask_of(mate for mate in bits(domain) if self.silent(mate))
            if domain & self.state.across or not able & ~mask_of(own[:1]):
                self.bad.update(dict.fromkeys(own, "across"))
            elif len(own) >= min(DOMAIN_SAMPLE, able.bit_count()):
                self.uplinks.append(domain)
            else:
                continue
            self.candidates = {node: mates for node, mates in self.candidates.items() if mates != domain}

    def _never_passed(self) -> None:
        """Nodes that passed nothing; and domains of such, when nobody is seen to work towards other domains at all."""
        alike = 0
        self.bad = {node: relation for node, relation in self.bad.items() if relation != "any"}
        for node in bits(mask_of(self._by_node) & ~self.state.cleared):
            groups = self.against(node)
            if groups and self.enough(node, groups):
                mates = self.mates_due(node)
                if any(self.strong(node, group) for group in groups) and mates != UNTESTABLE:
                    if mates:
                        continue
                    self.bad[node] = "any"
                else:
                    alike |= 1 << node
        if len(self.bad) == len(self.fleet) > 2:
            # all fail alike, each by itself: sooner one fault that they share than so many
            self.bad = {}
        # with the bad nodes known, the rest of a domain may be enough to tell
        self._decide_domains()
        self.bad_mask, self.candidate_mask = mask_of(self.bad), mask_of(self.candidates)
        self._conflicts = self._find_conflicts()
        self.unreached = [block for block in self.fleet.domains.values() if block & alike and not block & ~alike]

    def _come_and_go(self) -> list[int]:
        """Small groups that failed although everything in them is seen to work together."""
        return [
            group
            for group in self.small
            if not group & ~self.state.cleared and not group & self.bad_mask and not self.state.unknown_pairs(group)
        ]

    def _flaky(self) -> int:
        """Nodes that pass and fail alike, with different partners who fail with no one else."""
        flaky = 0
        groups = self._come_and_go()
        for node in bits(union(groups)):
            own = [group for group in groups if group >> node & 1 and not self._others_fail(node, group)]
            if 1 << node in own or (len(own) > 1 and common(own) == 1 << node):
                flaky |= 1 << node
        return flaky

    def _others_fail(self, node: int, group: int) -> bool:
        known = self.bad_mask | ~self.state.cleared | 1 << node
        return any(not inner & known for other in bits(group & ~(1 << node)) for inner in self._by_node[other])

    def _pairs(self) -> list[int]:
        """Pairs whose two nodes both work with others of the same relation, and never with each other."""
        state = self.state
        count: dict[int, int] = {}
        for group in self.small:
            if group & (self.bad_mask | self.candidate_mask | self.flaky) or group & ~state.cleared:
                continue
            if any(group & domain and group & ~domain for domain in self.uplinks):
                continue
            pair = mask_of(state.unknown_pairs(group))
            if pair.bit_count() == 2:
                count[pair] = count.get(pair, 0) + state.fails[group]
        found = []
        for pair, fails in sorted(count.items()):
            proven = state.proven("across" if self.fleet.spans(pair) else "inside")
            if fails >= self.options.repeats and not pair & ~proven:
                found.append(pair)
        return found

    def _trunks(self) -> list[tuple[int, int]]:
        """Two domains with several separate bad pairs between them, and nobody who passed from one to the other."""
        between: dict[tuple[int, int], int] = {}
        for pair in self.pairs:
            one, other = (self.fleet.mates[node] for node in bits(pair))
            if one != other and not between.get((one, other), 0) & pair:
                between[one, other] = between.get((one, other), 0) | pair
        return [
            (one, other)
            for (one, other), nodes in between.items()
            if nodes.bit_count() >= 2 * min(DOMAIN_SAMPLE, one.bit_count(), other.bit_count())
            and nodes.bit_count() > 2
            and not any(self.state.cover[node] & other for node in bits(one))
        ]


def mask_of(nodes: Iterable[int]) -> int:
    return union(1 << node for node in nodes)


def union(groups: Iterable[int]) -> int:
    whole = 0
    for group in groups:
        whole |= group
    return whole


def common(groups: list[int]) -> int:
    shared = groups[0]
    for group in groups[1:]:
        shared &= group
    return shared
