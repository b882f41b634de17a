import { describe, expect, test } from 'vitest';
import {
  advanceGroup,
  checkGroupEvent,
  checkGroupSyncPage,
  createKeyRotated,
  type DeviceCertificate,
  encodeBase64url,
  type GroupEvent,
  type GroupProjection,
  type GroupSyncPage,
  saveGroup,
  signAsDevice,
  verifyGroupSyncPage,
} from '../../src/index.ts';
import {
  alice,
  anchor,
  bob,
  carol,
  codeOf,
  creationBody,
  eventOf,
  fill,
  groupId,
  memberOf,
  network,
  now,
  people,
  Story,
} from './fixture.ts';

/** Creation, admission, a message, a rotation of the relay, a promotion. */
function story(): Story {
  const made = new Story();
  made.admit(bob, carol);
  made.append(made.message(carol));
  made.rotate();
  made.do(alice, 'group.role.update', { account: bob.account, role: 'administrator' });
  return made;
}

const certificates = people.map((each) => each.certificate);
const pageOf = (events: GroupEvent[], changes: Partial<GroupSyncPage> = {}): GroupSyncPage => ({
  events,
  certificates,
  has_more: false,
  ...changes,
});
const advance = (events: GroupEvent[], from: GroupProjection | typeof anchor = anchor) =>
  advanceGroup(network, from, verifyGroupSyncPage(network, pageOf(events), {}));
const kinds = (events: GroupEvent[]) => advance(events).outcomes.map((outcome) => outcome.kind);

describe('05 §13.4: a page as a whole', () => {
  const made = story();
  const verify = (changes: Partial<GroupSyncPage>, request = {}) =>
    verifyGroupSyncPage(network, pageOf(made.events, changes), request);
  const refused = (changes: object, request = {}) =>
    codeOf(() => verify(changes as Partial<GroupSyncPage>, request));

  test('a valid page passes, also with certificates that no event refers to', () => {
    expect(verify({}).signers.size).toBe(people.length);
    expect(verify({ events: [] }).events).toEqual([]);
    expect(verify({ has_more: true }).has_more).toBe(true);
  });

  test('events ascend strictly after the requested position, and are not more than the limit', () => {
    const [first, second, ...rest] = made.events as [GroupEvent, GroupEvent, ...GroupEvent[]];
    expect(refused({ events: [second, first, ...rest] })).toBe('bad_request');
    expect(refused({ events: [first, first] })).toBe('bad_request');
    expect(refused({}, { after: 0 })).toBe('bad_request');
    expect(refused({}, { limit: 4 })).toBe('bad_request');
    expect(verify({}, { after: -1, limit: 5 }).events).toHaveLength(5);
  });

  test('an empty page promises nothing', () => {
    expect(refused({ events: [], has_more: true })).toBe('bad_request');
  });

  test('certificates are distinct by device, cover every reference, and all verify', () => {
    const [first] = certificates as [DeviceCertificate];
    expect(refused({ certificates: [...certificates, first] })).toBe('bad_request');
    expect(refused({ certificates: certificates.slice(1) })).toBe('bad_request');
    const forged = { ...first, account_signature: encodeBase64url(fill(0, 64)) };
    expect(refused({ certificates: [forged, ...certificates.slice(1)] })).toBe('invalid_signature');
    const extra = { ...people[3].certificate, device_signature: encodeBase64url(fill(0, 64)) };
    const used = certificates.slice(0, 3);
    expect(refused({ certificates: [...used, extra] })).toBe('invalid_signature');
    expect(refused({ events: [], certificates: [extra] })).toBe('invalid_signature');
  });

  test('an event of the wrong shape costs the page', () => {
    const [event] = made.events as [GroupEvent];
    const wrong = [
      { ...event, sequence: -1 },
      { ...event, epoch: '0' },
      { ...event, accepted_at: null },
      { ...event, payload: [] },
      { ...event, payload: { type: 'x' } },
      { ...event, signer_device_id: null },
      { ...event, $context: network.context },
    ];
    for (const each of wrong) expect(refused({ events: [each] })).toBe('bad_request');
    expect(codeOf(() => checkGroupSyncPage(network, null, {}))).toBe('bad_request');
  });
});

describe('05 §5.4: applying a page', () => {
  test('a whole timeline gives the state its host has', () => {
    const made = story();
    const { group, blocked } = advance(made.events);
    expect(blocked).toBeUndefined();
    expect(saveGroup(group as GroupProjection)).toEqual(saveGroup(made.group));
    expect(kinds(made.events)).toEqual(['applied', 'applied', 'message', 'applied', 'applied']);
  });

  test('any cut into two pages gives the same state; the first is left as it was', () => {
    const made = story();
    for (let at = 1; at < made.events.length; at += 1) {
      const half = advance(made.events.slice(0, at)).group as GroupProjection;
      const before = saveGroup(half);
      const rest = advance(made.events.slice(at), half);
      expect(saveGroup(rest.group as GroupProjection)).toEqual(saveGroup(made.group));
      expect(saveGroup(half)).toEqual(before);
    }
  });

  test('pruned messages leave a gap that changes nothing', () => {
    const made = story();
    const kept = made.events.filter((_, index) => index !== 2);
    const { group } = advance(kept);
    expect(saveGroup(group as GroupProjection)).toEqual(saveGroup(made.group));
  });

  test('effects of a creation and of an admission come with their events', () => {
    const [creation, admission] = advance(story().events).outcomes;
    expect(creation).toMatchObject({ kind: 'applied', effects: { joined: [memberOf(alice)] } });
    expect(admission).toMatchObject({
      kind: 'applied',
      effects: { advancesEpoch: true, joined: [memberOf(bob), memberOf(carol)] },
      verified: { signer: { account: alice.account, deviceId: alice.deviceId } },
    });
  });

  test('05 §13.4: without state, a page that does not begin with the creation is blocked', () => {
    const { group, outcomes, blocked } = advance(story().events.slice(1));
    expect({ group, outcomes }).toEqual({ group: undefined, outcomes: [] });
    expect(blocked?.error.code).toBe('bad_request');
    expect(blocked?.event.sequence).toBe(1);
  });

  test('a message before the creation is no message to skip', () => {
    const made = story();
    const { group, blocked } = advance([made.events[2] as GroupEvent]);
    expect(group).toBeUndefined();
    expect(blocked).toBeDefined();
  });
});

describe('05 §5.5: what blocks', () => {
  const blockedBy = (index: number, change: (event: GroupEvent) => GroupEvent) => {
    const made = story();
    const events = made.events.map((event, at) => (at === index ? change(event) : event));
    const { blocked, outcomes, group } = advance(events);
    expect(blocked?.event.sequence).toBe(events[index]?.sequence);
    expect(outcomes).toHaveLength(index);
    expect(group?.sequence).toBe(index === 0 ? undefined : index - 1);
    return blocked?.error.code;
  };
  const payload = (event: GroupEvent, change: object) => ({
    ...event,
    payload: { ...event.payload, ...change },
  });

  test('a management event whose signature does not verify', () => {
    expect(blockedBy(4, (event) => payload(event, { role: 'member' }))).toBe('invalid_signature');
    expect(blockedBy(4, (event) => ({ ...event, signer_device_id: bob.deviceId }))).toBe(
      'invalid_signature',
    );
  });

  test('a management event that is malformed, or of another group', () => {
    const creation = signAsDevice(network, { ...creationBody(), name: ' ' }, alice);
    expect(blockedBy(0, (event) => payload(event, creation))).toBe('bad_request');
    expect(blockedBy(4, (event) => payload(event, { role: 'owner' }))).toBe('bad_request');
  });

  test('an operation its signer had no right to', () => {
    const made = story();
    const { prev_hash = '' } = (made.events[4] as GroupEvent).payload as { prev_hash?: string };
    const body = {
      $type: network.type('group.update'),
      group_id: groupId,
      prev_hash,
      name: 'Mine',
    };
    const update = signAsDevice(network, body, carol);
    const event = { ...(made.events[4] as GroupEvent), signer_device_id: carol.deviceId };
    expect(blockedBy(4, () => ({ ...event, payload: update }))).toBe('forbidden');
  });

  test('a missing chain event: the next one names an unknown digest', () => {
    const made = story();
    made.do(alice, 'group.update', { name: 'x' });
    const { blocked } = advance(made.events.filter((_, index) => index !== 4));
    expect(blocked?.error.code).toBe('state_conflict');
  });

  test('a missing rotation of the relay shows in the epoch of the next event', () => {
    const { blocked } = advance(story().events.filter((_, index) => index !== 3));
    expect(blocked?.error.code).toBe('bad_request');
  });

  test('an unknown type: all later events wait', () => {
    const future = { $type: network.type('group.merge'), group_id: groupId };
    expect(blockedBy(3, (event) => ({ ...event, payload: future }))).toBe('invalid_state');
  });

  test('05 §4.3: a rotation of the relay with a signer, a signature or anything else', () => {
    const signed = (event: GroupEvent) => ({ ...event, signer_device_id: alice.deviceId });
    expect(blockedBy(3, signed)).toBe('bad_request');
    expect(blockedBy(3, (event) => payload(event, { device_signature: 'x' }))).toBe('bad_request');
    expect(blockedBy(3, (event) => payload(event, { epoch: 9 }))).toBe('bad_request');
    expect(blockedBy(3, (event) => ({ ...event, epoch: event.epoch - 1 }))).toBe('bad_request');
  });

  test('a client event without a signer', () => {
    const unsigned = ({ signer_device_id: _, ...event }: GroupEvent) => event as GroupEvent;
    expect(blockedBy(4, unsigned)).toBe('bad_request');
  });
});

describe('05 §14.2: what is rejected alone', () => {
  const rejectedCode = (change: (event: GroupEvent) => GroupEvent) => {
    const made = story();
    const events = made.events.map((event, at) => (at === 2 ? change(event) : event));
    const { outcomes, blocked, group } = advance(events);
    expect(blocked).toBeUndefined();
    expect(saveGroup(group as GroupProjection)).toEqual(saveGroup(made.group));
    const outcome = outcomes[2];
    return outcome?.kind === 'rejected' ? outcome.error.code : outcome?.kind;
  };
  const payload = (event: GroupEvent, change: object) => ({
    ...event,
    payload: { ...event.payload, ...change },
  });

  test('a message is rejected, and synchronisation goes on to the same state', () => {
    expect(rejectedCode((event) => event)).toBe('message');
    expect(rejectedCode((event) => payload(event, { created_at: now + 1 }))).toBe(
      'invalid_signature',
    );
    expect(rejectedCode((event) => payload(event, { message_id: 'x' }))).toBe('bad_request');
    expect(rejectedCode((event) => payload(event, { extension: null }))).toBe('bad_request');
    expect(rejectedCode((event) => payload(event, { padding: 'x'.repeat(262_144) }))).toBe(
      'request_too_large',
    );
    expect(rejectedCode((event) => ({ ...event, epoch: event.epoch + 1 }))).toBe('bad_request');
    const unsigned = ({ signer_device_id: _, ...event }: GroupEvent) => event as GroupEvent;
    expect(rejectedCode(unsigned)).toBe('bad_request');
  });

  test('a message of a nonmember', () => {
    const dave = people[3];
    const made = new Story();
    made.admit(bob, carol);
    const message = made.message(dave);
    expect(rejectedCode(() => message)).toBe('forbidden');
  });
});

describe('05 §4.3: one event', () => {
  test('it comes back with the kind of its body', () => {
    const made = story();
    const found = made.events.map((event) => checkGroupEvent(network, event).content.kind);
    expect(found).toEqual([
      'group.create',
      'group.application.approval',
      'group.message',
      'group.key.rotated',
      'group.role.update',
    ]);
    const unknown = eventOf({ $type: 'elsewhere.group.create' }, {});
    expect(checkGroupEvent(network, unknown).content).toEqual({
      kind: 'unknown',
      type: 'elsewhere.group.create',
    });
    const bound = eventOf({ $type: 'elsewhere', $context: 'x' }, {});
    expect(codeOf(() => checkGroupEvent(network, bound))).toBe('bad_request');
  });

  test('a rotation that this relay makes is one a client accepts', () => {
    const event = eventOf(createKeyRotated(network), { sequence: 1, epoch: 1 });
    expect(checkGroupEvent(network, event).content).toEqual({ kind: 'group.key.rotated' });
  });
});
