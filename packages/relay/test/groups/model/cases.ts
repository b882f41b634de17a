/**
 * Permanent sequences: each is the shortest that revealed a deliberately broken relay and that random
 * sequences seldom contain. Each begins with a group of three, with ben as its administrator; dora
 * and emil are outsiders.
 */
import type { Step } from './commands.ts';

const sure = { device: 0, isStale: false } as const;
const owner = { ...sure, by: 'owner' } as const;
const all = { targets: [3, 4], all: true };
const right = { ...all, isWrong: false };
const applyBoth: readonly Step[] = [
  { kind: 'apply', by: 3, device: 0, which: 0, again: false },
  { kind: 'apply', by: 4, device: 0, which: 0, again: false },
];
const invite = (maxUses: number): Step => ({
  ...{ kind: 'invite', by: 'owner', device: 0, life: 5_000 },
  ...{ invitee: undefined, maxUses, again: undefined },
});
const ask = (by: number): Step => ({ kind: 'ask-recovery', by, device: 0, again: false });
const keys = (by: number, device: number): Step => ({
  ...{ kind: 'keys', by, device, after: -1, limit: 4 },
});
const prepare = {
  kind: 'prepare',
  ...owner,
  isFresh: false,
  newKey: true,
  isWrong: false,
} as const;

export const cases: Readonly<Record<string, readonly Step[]>> = {
  '05 §13.15: a batch uses its invitation no more often than it allows': [
    invite(1),
    ...applyBoth,
    { kind: 'approve', ...owner, ...right },
    { kind: 'approve', ...owner, ...right, all: false, targets: [4] },
    { kind: 'lists', by: 'owner', device: 0, limit: 1 },
    { kind: 'approve', ...owner, ...right, all: false, targets: [3] },
  ],
  '05 §13.15: a batch with the last use ends its invitation': [
    invite(2),
    ...applyBoth,
    { kind: 'approve', ...owner, ...right },
    { kind: 'lists', by: 'owner', device: 0, limit: 1 },
    { kind: 'remove', ...owner, targets: [3], all: false },
    { kind: 'resolve', by: 3, device: 0, which: 1 },
  ],
  '05 §9.3: from its last second on a request cannot be approved': [
    ask(2),
    { kind: 'end', which: 0, isEarly: true },
    { kind: 'lists', by: 'owner', device: 0, limit: 1 },
    { kind: 'wait', seconds: 1 },
    { kind: 'recover', ...owner, targets: [2], all: false, isWrong: false },
    { kind: 'job', which: 2 },
  ],
  '05 §13.26: an account that joins or recovers meanwhile needs a box again': [
    { ...prepare, ...all },
    ...applyBoth,
    { kind: 'approve', ...owner, ...right },
    { kind: 'commit', ...owner },
    { ...prepare, ...all, all: false },
    ask(2),
    { kind: 'recover', ...owner, targets: [2], all: false, isWrong: false },
    { kind: 'commit', ...owner },
    { ...prepare, targets: [2], all: false },
    { kind: 'commit', ...owner },
    keys(2, 0),
  ],
  "05 §13.19: a ban deletes its target's application, and an unban does not restore it": [
    ...applyBoth,
    { kind: 'ban', ...owner, targets: [3], all: false },
    { kind: 'lists', by: 'owner', device: 0, limit: 1 },
    { kind: 'unban', ...owner, targets: [3], all: false },
    { kind: 'approve', ...owner, ...right, all: false, targets: [3] },
  ],
  '05 §7.3: a removed device that held the current secret costs an epoch, another does not': [
    keys(1, 1),
    { kind: 'sync', by: 2, device: 1, after: -1, limit: 8 },
    { kind: 'devices', whose: 1, laptop: false },
    { kind: 'devices', whose: 2, laptop: false },
    { kind: 'job', which: 1 },
    { kind: 'devices', whose: 1, laptop: true },
    keys(1, 1),
  ],
  '05 §7.3: a removed device that held an older secret costs no epoch': [
    keys(1, 1),
    { kind: 'remove', ...owner, targets: [2], all: false },
    { kind: 'devices', whose: 1, laptop: false },
    { kind: 'job', which: 1 },
    keys(1, 0),
  ],
  '05 §10.3: rejoining restores no earlier access': [
    { kind: 'send', by: 2, device: 0, again: undefined, isChanged: false, isOld: false },
    { kind: 'leave', ...sure, by: 2 },
    { kind: 'send', by: 'owner', device: 0, again: undefined, isChanged: false, isOld: false },
    { kind: 'apply', by: 2, device: 1, which: 0, again: false },
    { kind: 'approve', ...owner, ...right },
    keys(2, 0),
    keys(2, 1),
  ],
  '05 §13.28: a repeat after the end of the group is refused': [
    { kind: 'send', by: 2, device: 0, again: undefined, isChanged: false, isOld: false },
    { kind: 'close', ...owner, isMeant: true },
    { kind: 'send', by: 2, device: 0, again: 0, isChanged: false, isOld: false },
    { kind: 'sync', by: 2, device: 1, after: -1, limit: 8 },
    keys(2, 0),
  ],
};
