/** A clock that may be wrong deletes nothing, but hints are sent. */
import { canonicalJson } from '@posthouse/protocol/json';
import pino from 'pino';
import { beforeEach, expect, test } from 'vitest';
import { TestGroup } from '../fixtures/group.ts';
import { Person } from '../fixtures/person.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';
import { ServedRelay } from '../support/served-relay.ts';

const day = 86_400;
const relay = inProcessRelay({ groupRecoveryWait: 100 });
const ann = relay.person('ann');
let ben: Person;
let eve: Person;
let group: TestGroup;

beforeEach(async () => {
  [ben, eve] = [await Person.register(relay, 'ben'), await Person.register(relay, 'eve')];
  group = await TestGroup.create(relay, ann);
  await group.admit(ben);
});

const groupId = () => group.groupId;
const applications = () => ({
  ...{ kind: 'group-applications', group: groupId() },
  accounts: [ann.account],
});
/** What the job publishes while deleting is paused. */
async function announced(since?: number) {
  relay.takeNotices();
  await relay.runPaused('groups.expiry', since);
  return relay.takeNotices();
}

test('05 §15.3, §15.4: ends are announced once, and nothing is deleted', async () => {
  await group.apply(eve, await group.invite({ expires_at: relay.clock.now() + 100 }));
  await group.requestRecovery(ben);
  relay.clock.advance(99);
  expect(await announced()).toEqual([]);
  relay.clock.advance(1);
  const before = await relay.dump();
  const recoveries = { kind: 'group-recoveries', group: groupId() };
  expect(await announced()).toMatchObject([applications(), recoveries]);
  expect(await relay.dump()).toEqual(before);
  expect(await announced(relay.clock.now())).toEqual([]);
  expect(await announced(relay.clock.now() - 1)).toHaveLength(2);
  // When deleting goes on, they are deleted and announced as always.
  relay.takeNotices();
  await relay.runJob('groups.expiry');
  expect(relay.takeNotices()).toHaveLength(2);
  expect(await relay.rows('group_recoveries')).toEqual([]);
});

test('05 §12.2: expired records count for no quota, deleted or not', async () => {
  const later = relay.clock.now() + 100;
  const invite = await group.invite({ expires_at: later });
  await group.apply(eve, invite);
  await group.requestRecovery(ben);
  await group.setRole(ben, 'administrator');
  const create = async (by: Person) => {
    const next = group.invitation({}, { by });
    // Room for this record and no other.
    await relay.restart({ groupRecordBytes: Buffer.byteLength(canonicalJson(next)) });
    return await relay.codeOf('group.invite.create', next, { session: by.session() });
  };
  const codes = async () => [await create(ann), await create(ben), await create(ann)];
  expect(await codes()).toEqual(['rate_limited', 'rate_limited', 'rate_limited']);
  // The invitation that ben used expires too.
  relay.clock.advance(day);
  expect(await codes()).toEqual(['ok', 'ok', 'rate_limited']);
});

test('05 §15: a running relay whose clock jumps sends hints', async () => {
  await using served = new ServedRelay({
    limits: { clockJump: day, deviceSessionLifetime: 100 * day },
  });
  const lines: string[] = [];
  served.log = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) });
  await served.start();
  const owner = await served.register('owner');
  const guest = await served.register('guest');
  const hosted = await TestGroup.create(served, owner);
  await hosted.apply(guest, await hosted.invite({ expires_at: served.clock.now() + day }));
  const socket = await served.withGroups(owner, [hosted]);
  served.clock.advance(2 * day);
  expect((await socket.notification()).method).toBe('group.application.changed');
  expect(lines).toEqual([expect.stringContaining('deleting paused')]);
});
