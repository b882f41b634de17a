/** A host that was put back to an earlier state, and the owner who hands back what it lost (05 §5.6). */
import {
  advanceGroup,
  type GroupEvent,
  type GroupSyncPage,
  verifyGroupSyncPage,
} from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { beforeEach, describe, expect, test } from 'vitest';
import { restored } from '../../src/groups/restored.ts';
import { insertRows, readTables } from '../../src/storage/move/rows.ts';
import { restoredStep } from '../../src/storage/restored.ts';
import { TestGroup } from '../fixtures/group.ts';
import { readChain, readKeys, verified } from '../fixtures/group-reader.ts';
import type { Person } from '../fixtures/person.ts';
import { inProcessRelay, network } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');
const cem = relay.person('cem');
const dan = relay.person('dan');
/** By how much sequences and epochs grow if no time goes by. */
const step = 2 ** 32;
let group: TestGroup;
beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
  await group.admit(ben, cem);
});

/** Puts the groups of the relay back to what they are now, as a restore does. */
async function backUp(): Promise<() => Promise<void>> {
  const { storage } = relay.context;
  const madeAt = relay.clock.now();
  const tables = (await readTables(storage)).filter(({ name }) => /^groups$|^group_/.test(name));
  const rows = new Map<string, Awaited<ReturnType<typeof relay.rows>>>();
  for (const { name } of tables) rows.set(name, await relay.rows(name));
  return async () => {
    await storage.write('relay', async (tx) => {
      for (const table of tables) {
        await tx.run(`DELETE FROM "${table.name}"`);
        await insertRows(tx, table, rows.get(table.name) as never);
      }
      const parts = {
        now: relay.clock.now(),
        random: nodeRandom,
        service: network.type('').slice(0, -1),
        step: restoredStep(relay.clock.now() - madeAt),
      };
      for (const each of restored) {
        if (typeof each === 'string') await tx.run(each);
        else await each(tx, parts);
      }
    });
  };
}

async function sync(
  person: Person,
  after = -1,
  { device, limit }: { readonly device?: string; readonly limit?: number } = {},
): Promise<GroupSyncPage> {
  const params = { group_id: group.groupId, after, ...(limit !== undefined && { limit }) };
  const answer = await relay.call('group.sync', params, { session: person.session(device) });
  return answer as unknown as GroupSyncPage;
}

interface Lost {
  readonly events: readonly GroupEvent[];
  readonly certificates: GroupSyncPage['certificates'];
}

/** Loses what `acts` writes to the chain, and returns that. */
async function lose(acts: () => Promise<void>): Promise<Lost> {
  const before = (await sync(ann)).events.at(-1)?.sequence;
  const restore = await backUp();
  await acts();
  const { events, certificates } = await sync(ann, before);
  await restore();
  return { events, certificates };
}

function certificatesOf(...parts: readonly Lost[]) {
  return parts.flatMap(({ certificates }) =>
    certificates.map((each) => [JSON.stringify(each), each] as const),
  );
}

/** Admits Dan and removes Ben. */
async function change(): Promise<void> {
  await group.admit(dan);
  await group.remove([ben]);
}

const boxesFor = (...people: readonly Person[]) =>
  Object.fromEntries(people.map((person) => [person.account, group.box(person)]));

/** The owner's update that hands events back. */
function handingBack(
  { events, certificates }: Lost,
  { boxes = boxesFor(dan), by = ann }: { boxes?: object; by?: Person } = {},
) {
  const restore = { events, certificates, client_secret_boxes: boxes };
  return group.link('group.update', { name: 'Club', restore } as never, { by });
}

const codeOf = (body: object, by = ann) =>
  relay.codeOf('group.update', body, { session: by.session() });

describe('05 §5.6, §7.2: after a host lost events of the chain,', () => {
  test('no epoch or sequence is given twice, and no message of before is accepted', async () => {
    await group.remove([cem]);
    const { sequence, epoch } = (await readChain(relay, group, ann)).state;
    await lose(change);
    const { state } = await readChain(relay, group, ann);
    expect(state).toMatchObject({ sequence: sequence + step, epoch: epoch + step });
    const message = group.message(ann, epoch + 1);
    const options = { session: ann.session() };
    expect(await relay.codeOf('group.message.send', message, options)).toBe('state_conflict');
    expect(verified(await readKeys(relay, group, ben)).get(epoch + step)).toBeDefined();
  });

  test('the operator learns of a group whose members know more of its chain', async () => {
    const known = () => relay.context.metrics.value('restore_losses', { kind: 'group' });
    const ask = (after: number, limit: number) =>
      relay.call(
        'group.sync',
        { group_id: group.groupId, after, limit },
        { session: ann.session() },
      );
    const lost = await lose(change);
    const [first] = lost.events as [GroupEvent];
    // Many events, and one that it has.
    await ask(first.sequence, 100);
    await ask(first.sequence - 2, 1);
    expect(known()).toBe(0);
    for (const event of lost.events) await ask(event.sequence - 1, 1);
    expect(known()).toBe(1);
    await relay.call('group.update', handingBack(lost), { session: ann.session() });
    relay.clock.advance(86_400);
    await ask(first.sequence - 1, 1);
    expect(known()).toBe(1);
  });

  test('the owner hands them back: who left is out, who joined is in, and messages since are rejected', async () => {
    const lost = await lose(change);
    const { state: before } = await readChain(relay, group, cem);
    const since = await group.send(ben, before.epoch);
    await group.write('group.update', handingBack(lost));

    const { state } = await readChain(relay, group, cem);
    expect([...state.members.keys()].sort()).toEqual([ann, cem, dan].map((p) => p.account).sort());
    expect(state).toMatchObject({ head: group.head, epoch: before.epoch + 1 });
    const page = verifyGroupSyncPage(network, await sync(cem), { after: -1 });
    const anchor = { group_id: group.groupId, relay_id: relay.relayId };
    const { outcomes } = advanceGroup(network, anchor, page);
    const rejected = outcomes.filter(({ kind }) => kind === 'rejected');
    expect(rejected).toMatchObject([{ event: { sequence: since } }]);
    expect(page.events.slice(0, -4)).toEqual(expect.arrayContaining([...lost.events]));

    const from = (person: Person) => ({ session: person.session() });
    const benSends = group.message(ben, state.epoch);
    expect(await relay.codeOf('group.message.send', benSends, from(ben))).toBe('forbidden');
    const params = { group_id: group.groupId };
    expect(await relay.codeOf('group.sync', params, from(ben))).toBe('forbidden');
    expect(await relay.codeOf('group.key.sync', params, from(ben))).toBe('forbidden');
    // Dan has the secrets from here on.
    expect(verified(await readKeys(relay, group, dan)).get(state.epoch)).toBeDefined();
    await group.send(dan, state.epoch);
    await group.admit(ben);
  });

  test('a lost rotation of the client secret comes back with a box for each member', async () => {
    const lost = await lose(async () => {
      await change();
      await group.rotate();
    });
    const few = { boxes: boxesFor(ann, dan) };
    expect(await codeOf(handingBack(lost, few))).toBe('bad_request');
    const all = handingBack(lost, { boxes: boxesFor(ann, cem, dan) });
    await group.write('group.update', all);
    const { state } = await readChain(relay, group, cem);
    expect(state.client_secret_commitment).toBe(group.commitment);
    for (const person of [ann, cem, dan]) {
      const last = (await readKeys(relay, group, person)).at(-1);
      expect(last).toMatchObject({ epoch: state.epoch, status: 'verified' });
    }
    await group.rotate();
  });

  test('restored twice, what either lost can be handed back', async () => {
    const lost = await lose(change);
    await (await backUp())();
    await group.write('group.update', handingBack(lost));
    expect((await readChain(relay, group, cem)).state.members.has(ben.account)).toBe(false);
  });

  test('what is lost after an earlier restore can be handed back, and what both lost', async () => {
    // The chain does not go on between the two restores.
    await (await backUp())();
    await group.send(ben, (await readChain(relay, group, ann)).state.epoch);
    const first = await lose(change);
    await group.send(ben, (await readChain(relay, group, ann)).state.epoch);
    const second = await lose(async () => {
      await group.write('group.update', handingBack(first));
    });
    const events = [...first.events, ...second.events];
    const all = { events, certificates: [...new Map(certificatesOf(first, second)).values()] };
    await group.write('group.update', handingBack(all));
    const { state } = await readChain(relay, group, cem);
    expect([...state.members.keys()].sort()).toEqual([ann, cem, dan].map((p) => p.account).sort());
    expect(state.head).toBe(group.head);
  });

  test('restored twice from one backup, no sequence, epoch or secret is given twice', async () => {
    const restore = await backUp();
    const seen = new Map<number, string>();
    const epochs = new Map<number, string>();
    for (const life of ['first', 'second', 'third']) {
      // Seconds: an operator's second try.
      relay.clock.advance(30);
      await restore();
      const { state } = await readChain(relay, group, ann);
      for (let count = 0; count < 3; count += 1) await group.send(ben, state.epoch);
      const lifeOnly = (await sync(ann, state.sequence - 1)).events;
      expect(lifeOnly).toHaveLength(4);
      for (const { sequence } of lifeOnly) {
        expect(seen.has(sequence), `${sequence} of ${life}`).toBe(false);
        seen.set(sequence, life);
      }
      const secret = verified(await readKeys(relay, group, cem)).get(state.epoch);
      expect(secret).toBeDefined();
      expect(epochs.has(state.epoch)).toBe(false);
      epochs.set(state.epoch, life);
    }
  });

  test('they can be handed back for 30 days', async () => {
    const lost = await lose(change);
    relay.clock.advance(30 * 86_400 - 1);
    await group.write('group.update', handingBack(lost));
  });
});

describe('05 §5.6: a group of a restored host waits for its owner:', () => {
  const leave = (person: Person) =>
    group.link('group.member.leave', { account: person.account }, { by: person });
  const codeOfLeaving = (person: Person) =>
    relay.codeOf('group.member.leave', leave(person), { session: person.session() });

  test('for 7 days no one else changes it, but messages are accepted', async () => {
    await group.setRole(cem, 'administrator');
    const lost = await lose(change);
    const { state } = await readChain(relay, group, ann);
    const { head } = group;
    group.head = state.head;
    for (const person of [ben, cem]) {
      expect(await codeOfLeaving(person)).toBe('temporarily_unavailable');
      await group.send(person, state.epoch);
    }
    const removal = (by: Person) =>
      group.link('group.member.removal', { accounts: [ben.account] }, { by });
    const remove = (by: Person) =>
      relay.codeOf('group.member.remove', removal(by), { session: by.session() });
    expect(await remove(cem)).toBe('temporarily_unavailable');
    // What holds always is answered as always.
    expect(await remove(ben)).toBe('forbidden');
    relay.clock.advance(7 * 86_400 - 1);
    const left = relay.call('group.member.leave', leave(ben), { session: ben.session() });
    await expect(left).rejects.toMatchObject({ data: { retry_after: 1 } });
    group.head = head;
    await group.write('group.update', handingBack(lost));
    expect(await codeOfLeaving(cem)).toBe('ok');
  });

  test('after 7 days the others change it', async () => {
    await (await backUp())();
    relay.clock.advance(7 * 86_400);
    expect(await codeOfLeaving(ben)).toBe('ok');
  });

  test('a change by the owner ends it', async () => {
    await (await backUp())();
    await group.update({ name: 'Another' });
    expect(await codeOfLeaving(ben)).toBe('ok');
  });

  test('the owner who lost nothing ends it by reading on, and may still hand back', async () => {
    const lost = await lose(change);
    const { head } = group;
    const { state } = await readChain(relay, group, ann);
    group.head = state.head;
    const before = await sync(ann);
    // What a client asks that knows more, and what others read, does not end it.
    for (const { sequence } of lost.events) await sync(ann, sequence - 1);
    await sync(cem, state.sequence);
    expect(await codeOfLeaving(ben)).toBe('temporarily_unavailable');
    for (let count = 0; count < 2; count += 1) await sync(ann, state.sequence);
    expect(await sync(ann)).toEqual(before);
    group.head = head;
    await group.write('group.update', handingBack(lost));
  });

  test('a device of the owner that was away ends it after a day at the earliest', async () => {
    await sync(ann, -1, { device: 'laptop' });
    await lose(change);
    const { state } = await readChain(relay, group, ann);
    group.head = state.head;
    const readOn = () => sync(ann, state.sequence, { device: 'laptop' });
    await readOn();
    relay.clock.advance(86_400 - 1);
    await readOn();
    expect(await codeOfLeaving(ben)).toBe('temporarily_unavailable');
    relay.clock.advance(1);
    expect(await codeOfLeaving(ben)).toBe('temporarily_unavailable');
    await readOn();
    expect(await relay.rows('group_owner_reads')).toEqual([]);
    expect(await codeOfLeaving(ben)).toBe('ok');
  });

  test('all devices of the owner that have access end it at once', async () => {
    await sync(ann, -1, { device: 'laptop' });
    await (await backUp())();
    const { sequence } = (await readChain(relay, group, ann)).state;
    for (let count = 0; count < 2; count += 1) await sync(ann, sequence, { device: 'laptop' });
    expect(await relay.rows('group_owner_reads')).toHaveLength(1);
    expect(await codeOfLeaving(ben)).toBe('temporarily_unavailable');
    await sync(ann, sequence);
    expect(await relay.rows('group_owner_reads')).toEqual([]);
    expect(await codeOfLeaving(ben)).toBe('ok');
  });

  test('if a device of the owner knows of a lost change, no other one ends it', async () => {
    await sync(ann, -1, { device: 'laptop' });
    const lost = await lose(change);
    const [first] = lost.events as [GroupEvent];
    const { head } = group;
    const { state } = await readChain(relay, group, ann);
    group.head = state.head;
    // What others ask for says nothing about the owner.
    await sync(cem, first.sequence - 1, { limit: 1 });
    expect(await relay.rows('group_owner_reads')).toEqual([]);
    await sync(ann, state.sequence, { device: 'laptop' });
    await sync(ann, first.sequence - 1, { limit: 1 });
    relay.clock.advance(3 * 86_400);
    await sync(ann, state.sequence, { device: 'laptop' });
    expect(await codeOfLeaving(ben)).toBe('temporarily_unavailable');
    group.head = head;
    await group.write('group.update', handingBack(lost));
    expect(await relay.rows('group_owner_reads')).toEqual([]);
    expect(await codeOfLeaving(cem)).toBe('ok');
  });

  test('once it is over, others go on', async () => {
    await (await backUp())();
    await sync(ann, (await readChain(relay, group, ann)).state.sequence);
    expect(await codeOfLeaving(ben)).toBe('ok');
  });
});

describe('05 §5.6: handing back changes nothing', () => {
  const refused: [string, string, (lost: Lost) => object | Promise<object>][] = [
    [
      'with a changed event',
      'invalid_signature',
      (lost) =>
        handingBack({
          ...lost,
          events: lost.events.map((event, index) =>
            index === 0 ? { ...event, payload: { ...event.payload, more: 1 } } : event,
          ),
        }),
    ],
    [
      'without the first event',
      'state_conflict',
      (lost) => handingBack({ ...lost, events: lost.events.slice(1) }),
    ],
    [
      'without the last event',
      'state_conflict',
      (lost) => handingBack({ ...lost, events: lost.events.slice(0, -1) }),
    ],
    [
      'at sequences that were given after the restore',
      'state_conflict',
      ({ events, certificates }) => {
        const moved = events.map((event) => ({ ...event, sequence: event.sequence + step }));
        return handingBack({ certificates, events: moved });
      },
    ],
    [
      'in epochs that were given after the restore',
      'state_conflict',
      ({ events, certificates }) => {
        const moved = events.map((event) => ({ ...event, epoch: event.epoch + step }));
        return handingBack({ certificates, events: moved });
      },
    ],
    [
      'with an event of the future',
      'state_conflict',
      ({ events, certificates }) => {
        const later = relay.clock.now() + 1;
        return handingBack({
          certificates,
          events: events.map((event) => ({ ...event, accepted_at: later })),
        });
      },
    ],
    ['without a box', 'bad_request', (lost) => handingBack(lost, { boxes: {} })],
    [
      'with a box of no member',
      'bad_request',
      (lost) => handingBack(lost, { boxes: boxesFor(dan, ben) }),
    ],
    ['with a message', 'bad_request', (lost) => withMessage(lost)],
    [
      'with more members than the host accepts',
      'bad_request',
      (lost) => withNext(lost, { member_capacity: relay.context.limits.groupMembers + 1 }),
    ],
    [
      'at a sequence that is taken',
      'state_conflict',
      async ({ events, certificates }) => {
        const { sequence } = (await readChain(relay, group, ann)).state;
        const moved = events.map((event, index) => ({ ...event, sequence: sequence - 1 + index }));
        return handingBack({ certificates, events: moved });
      },
    ],
    [
      'after 30 days',
      'state_conflict',
      (lost) => {
        relay.clock.advance(30 * 86_400);
        return handingBack(lost);
      },
    ],
    [
      'as no object',
      'bad_request',
      () => group.link('group.update', { name: 'x', restore: 1 } as never),
    ],
    [
      'after the chain went on',
      'state_conflict',
      async (lost) => {
        const { head } = group;
        const { state } = await readChain(relay, group, ann);
        group.head = state.head;
        await group.update({ name: 'Another' });
        group.head = head;
        return handingBack(lost);
      },
    ],
  ];

  /** An event that the owner signs now, and that no host ever accepted. */
  function withNext({ events, certificates }: Lost, change: object) {
    const last = events.at(-1) as GroupEvent;
    const payload = group.link('group.update', { name: 'x', ...change } as never);
    const next = { ...last, payload, sequence: last.sequence + 1 } as never;
    return handingBack({ certificates, events: [...events, next] });
  }

  function withMessage({ events, certificates }: Lost) {
    const [first] = events as [GroupEvent];
    const payload = group.message(ann, first.epoch);
    return handingBack({ certificates, events: [{ ...first, payload } as never] });
  }

  test.each(refused)('%s: %s', async (_, code, make) => {
    const lost = await lose(change);
    const body = await make(lost);
    const before = await relay.dump();
    expect(await codeOf(body)).toBe(code);
    expect(await relay.dump()).toEqual(before);
  });

  test('by a member who is not the owner, by one who left, and on a host that lost nothing', async () => {
    const [page] = [await sync(ann)];
    expect(await codeOf(handingBack({ ...page, events: [] }, { boxes: {} }))).toBe(
      'state_conflict',
    );
    const lost = await lose(change);
    const before = await relay.dump();
    for (const person of [cem, ben]) {
      expect(await codeOf(handingBack(lost, { by: person }), person)).toBe('forbidden');
    }
    expect(await codeOf(handingBack(lost, { by: dan }), dan)).toBe('forbidden');
    expect(await relay.dump()).toEqual(before);
  });
});
