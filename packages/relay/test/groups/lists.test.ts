import {
  encodeBase64url,
  type GroupApplicationList,
  type GroupInviteList,
  utf8,
  verifyGroupApplicationList,
  verifyGroupInviteList,
} from '@posthouse/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { TestGroup } from '../fixtures/group.ts';
import { Person } from '../fixtures/person.ts';
import { inProcessRelay, network } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');
const cem = relay.person('cem');
let group: TestGroup;

/** Ann owns the group, Ben administers it, Cem is a member; all of them may invite. */
beforeEach(async () => {
  group = await TestGroup.create(relay, ann, { invite_policy: 'members_shareable' });
  const invite = await group.invite();
  for (const person of [ben, cem]) await group.apply(person, invite);
  await group.approve([ben, cem]);
  await group.setRole(ben, 'administrator');
  await revoke(invite.invite_id);
});

type List = 'invite' | 'application';
interface Asked {
  readonly cursor?: string | undefined;
  readonly limit?: number;
}

const params = (asked: Asked, group_id = group.groupId) => ({
  group_id,
  ...(asked.limit !== undefined && { limit: asked.limit }),
  ...(asked.cursor !== undefined && { cursor: asked.cursor }),
});
const codeOf = (list: List, person: Person, asked: Asked, group_id?: string) =>
  relay.codeOf(`group.${list}.list`, params(asked, group_id), { session: person.session() });
const revoke = async (invite_id: string) => {
  const request = { group_id: group.groupId, invite_id };
  await relay.call('group.invite.revoke', request, { session: ann.session() });
};

async function invites(person: Person, asked: Asked = {}): Promise<GroupInviteList> {
  const session = person.session();
  const page = await relay.call('group.invite.list', params(asked), { session });
  verifyGroupInviteList(network, page, params(asked));
  return page;
}

async function applications(person: Person, asked: Asked = {}): Promise<GroupApplicationList> {
  const session = person.session();
  const page = await relay.call('group.application.list', params(asked), { session });
  verifyGroupApplicationList(network, page, params(asked));
  return page;
}

/** What a page shows, as texts to compare. */
const shown = {
  invite: async (person: Person, asked: Asked) => {
    const { invites: items, next } = await invites(person, asked);
    return { ids: items.map(({ invite }) => invite.invite_id), next };
  },
  application: async (person: Person, asked: Asked) => {
    const { applications: items, next } = await applications(person, asked);
    return { ids: items.map(({ application }) => application.account), next };
  },
};

/** A whole traversal, with something done before each page but the first. */
async function traverse(
  list: List,
  person: Person,
  {
    limit,
    between = async () => {},
  }: { limit: number; between?: (page: number) => Promise<unknown> },
): Promise<string[][]> {
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    if (pages.length > 0) await between(pages.length);
    const page = await shown[list](person, { cursor, limit });
    expect(page.ids.length).toBeLessThanOrEqual(limit);
    pages.push(page.ids);
    expect(pages.length).toBeLessThan(10);
    cursor = page.next;
  } while (cursor !== undefined);
  return pages;
}

/** So many people who are not members. */
const people = (count: number): Promise<Person[]> =>
  Promise.all(
    Array.from({ length: count }, (_, index) => Person.register(relay, `guest ${index}`)),
  );

/** Applications under several invitations: public ones and some for one person alone. */
async function apply(guests: readonly Person[]): Promise<string[]> {
  const open = [await group.invite(), await group.invite()] as const;
  for (const [index, guest] of guests.entries()) {
    const targeted = index % 3 === 2 ? await group.invite({ invitee: guest.account }) : undefined;
    await group.apply(guest, targeted ?? open[index % 2 === 0 ? 0 : 1]);
  }
  return guests.map(({ account }) => account).sort();
}

describe('05 §13.11: the list of invitations', () => {
  test('shows owner and administrators all, ordinary members their own', async () => {
    const ofAnn = await group.invite();
    const ofBen = await group.invite({ max_uses: 2 }, { by: ben });
    const ofCem = await group.invite({ extra: 'é' } as object, { by: cem });
    const all = [ofAnn, ofBen, ofCem].map(({ invite_id }) => invite_id).sort();
    expect((await shown.invite(ann, {})).ids).toEqual(all);
    expect((await shown.invite(ben, {})).ids).toEqual(all);
    expect(await invites(cem)).toEqual({
      invites: [{ invite: ofCem, signer_device_id: cem.device().deviceId, uses: 0 }],
      certificates: [cem.device().certificate],
    });
  });

  test('omits revoked, expired and exhausted invitations, and counts uses', async () => {
    const [guest, other] = (await people(2)) as [Person, Person];
    const revoked = await group.invite();
    await revoke(revoked.invite_id);
    const over = await group.invite({ expires_at: relay.clock.now() + 10 });
    const targeted = await group.invite({ invitee: guest.account });
    await group.apply(guest, targeted);
    const some = await group.invite({ max_uses: 2 });
    await group.apply(other, some);
    expect((await invites(ann)).invites).toHaveLength(3);
    await group.approve([guest, other]);
    relay.clock.advance(9);
    const ids = (await shown.invite(ann, {})).ids;
    expect(ids.sort()).toEqual([over.invite_id, some.invite_id].sort());
    relay.clock.advance(1);
    expect((await invites(ann)).invites).toMatchObject([{ invite: some, uses: 1 }]);
  });

  test('has one certificate of each device, also if it was renewed in between', async () => {
    await group.invite();
    await group.invite({}, { device: 'laptop' });
    await ann.addDevice('phone', { expiresAt: relay.clock.now() + 1_000_000 });
    await ann.publishState();
    await group.invite();
    await group.invite({}, { by: ben });
    const page = await invites(ann);
    expect(page.invites).toHaveLength(4);
    expect(page.certificates).toHaveLength(3);
  });

  test('is empty and without a cursor if there is nothing', async () => {
    expect(await invites(ann)).toEqual({ invites: [], certificates: [] });
  });
});

describe('05 §13.14: the list of applications', () => {
  test('omits applications whose invitation ended, and shows the others', async () => {
    const [one, two, three] = (await people(3)) as [Person, Person, Person];
    const revoked = await group.invite();
    const over = await group.invite({ expires_at: relay.clock.now() + 10 });
    const valid = await group.invite();
    await group.apply(one, revoked);
    await group.apply(two, over);
    await group.apply(three, valid);
    await revoke(revoked.invite_id);
    expect((await shown.application(ann, {})).ids).toHaveLength(2);
    relay.clock.advance(10);
    expect((await shown.application(ben, {})).ids).toEqual([three.account]);
    // An account that applies again is listed again.
    await group.apply(one, valid);
    expect((await shown.application(ann, {})).ids).toHaveLength(2);
  });

  test('05 §13.14: is for owner and administrators only', async () => {
    const [guest] = await people(1);
    expect(await codeOf('application', cem, {})).toBe('forbidden');
    expect(await codeOf('application', guest as Person, {})).toBe('forbidden');
    await group.ban([ben]);
    expect(await codeOf('application', ben, {})).toBe('forbidden');
    expect(await codeOf('application', ann, {}, `grp_${'A'.repeat(22)}`)).toBe('not_found');
  });

  test('skips any number of applications of ended invitations without reading them', async () => {
    const guests = await people(12);
    const dead = await group.invite();
    for (const guest of guests) await group.apply(guest, dead);
    await revoke(dead.invite_id);
    await apply(guests.slice(0, 2));
    let rows = 0;
    const { storage } = relay.context;
    const { read } = storage;
    storage.read = (work) =>
      read.call(storage, async (tx) => {
        const all: typeof tx.all = async (sql, ...values) => {
          const found = await tx.all(sql, ...values);
          if (sql.includes('group_')) rows += found.length;
          return found as never;
        };
        return await work({ get: tx.get.bind(tx), all });
      }) as never;
    expect((await shown.application(ann, {})).ids).toHaveLength(2);
    // The caller's membership; two invitations, their applications, and the texts of those.
    expect(rows).toBe(1 + 2 + 2 + 2);
  });
});

describe('05 §12.7: paging', () => {
  const prepare = {
    invite: async () => {
      const ids: string[] = [];
      for (let each = 0; each < 5; each += 1) {
        ids.push((await group.invite({}, { by: [ann, ben, cem][each % 3] as Person })).invite_id);
      }
      return ids.sort();
    },
    application: async () => await apply(await people(5)),
  };

  describe.each(['invite', 'application'] as const)('the list of %ss', (list) => {
    test.each([
      [1, [1, 1, 1, 1, 1]],
      [2, [2, 2, 1]],
      [4, [4, 1]],
      [5, [5]],
      [6, [5]],
    ])('shows every record once, %i at a time', async (limit, sizes) => {
      const all = await prepare[list]();
      const pages = await traverse(list, ann, { limit });
      expect(pages.map(({ length }) => length)).toEqual(sizes);
      expect(pages.flat().sort()).toEqual(all);
      // 05 §12.7: in the same order each time.
      expect(await traverse(list, ben, { limit })).toEqual(pages);
    });

    test("has at most the relay's page size, whatever is asked for", async () => {
      await prepare[list]();
      await relay.restart({ pageSize: 2, maxPageSize: 3 });
      expect((await shown[list](ann, {})).ids).toHaveLength(2);
      expect((await shown[list](ann, { limit: 5 })).ids).toHaveLength(3);
      expect((await traverse(list, ann, { limit: 5 })).flat()).toHaveLength(5);
    });

    test('has at least one record on a page, and no more than fit', async () => {
      await prepare[list]();
      await relay.restart({ pageBytes: 1 });
      expect((await traverse(list, ann, { limit: 5 })).map(({ length }) => length)).toEqual([
        1, 1, 1, 1, 1,
      ]);
      const { length } = JSON.stringify(await invites(ann, { limit: 1 }));
      await relay.restart({ pageBytes: 3 * length });
      const [first = []] = await traverse(list, ann, { limit: 5 });
      expect(first.length).toBeGreaterThan(1);
      expect(first.length).toBeLessThan(5);
    });

    test('continues after deleted records, and shows new ones at their position', async () => {
      const all = await prepare[list]();
      const before = (await traverse(list, ann, { limit: 5 })).flat();
      const gone: string[] = [];
      const pages = await traverse(list, ann, {
        limit: 2,
        // The last one shown and the next one go before each page.
        between: async (page) => {
          const two = before.slice(2 * page - 1, 2 * page + 1);
          gone.push(...two);
          if (list === 'invite') for (const id of two) await revoke(id);
          else await rejectAll(two);
        },
      });
      const seen = pages.flat();
      expect(new Set(seen).size).toBe(seen.length);
      const kept = all.filter((id) => !gone.includes(id));
      expect(seen).toEqual(expect.arrayContaining(kept));
    });

    test('has an empty last page if the rest was deleted', async () => {
      await prepare[list]();
      const { ids, next } = await shown[list](ann, { limit: 3 });
      const rest = (await shown[list](ann, { cursor: next })).ids;
      expect([...ids, ...rest]).toHaveLength(5);
      if (list === 'invite') for (const id of rest) await revoke(id);
      else await rejectAll(rest);
      expect(await shown[list](ann, { cursor: next })).toEqual({ ids: [], next: undefined });
    });

    test('serves a cursor after a crash, and to another account with the same right', async () => {
      await prepare[list]();
      const { next } = await shown[list](ann, { limit: 3 });
      const rest = await shown[list](ann, { cursor: next });
      await relay.restart();
      expect(await shown[list](ann, { cursor: next })).toEqual(rest);
      expect(await shown[list](ben, { cursor: next })).toEqual(rest);
    });

    test('refuses a cursor of another group or list, and a malformed one', async () => {
      await prepare.invite();
      await prepare.application();
      const { next } = await shown[list](ann, { limit: 1 });
      const other = list === 'invite' ? 'application' : 'invite';
      expect(next).toMatch(/^[A-Za-z0-9._~-]+$/);
      expect(await codeOf(list, ann, { cursor: next })).toBe('ok');
      expect(await codeOf(other, ann, { cursor: next })).toBe('bad_request');
      const elsewhere = await TestGroup.create(relay, ann);
      expect(await codeOf(list, ann, { cursor: next }, elsewhere.groupId)).toBe('bad_request');
      const plain = Buffer.from(next ?? '', 'base64url').toString();
      const made = (text: string) => encodeBase64url(utf8(text));
      for (const cursor of [
        'x',
        '~',
        '..',
        made(''),
        made('x'),
        made(plain.replace(/^[a-z]+/, 'recoveries')),
        made(plain.slice(0, plain.lastIndexOf('/'))),
        made(`${plain}/x`),
        made(`${plain}'`),
        made(plain.replace(/[^/]*$/, '\u0000')),
        made(plain.replace(/[^/]*$/, 'é')),
      ]) {
        expect(await codeOf(list, ann, { cursor })).toBe('bad_request');
      }
    });

    test.each([0, -1, 1.5, '1', 2 ** 53])('refuses the limit %j', async (limit) => {
      expect(await codeOf(list, ann, { limit: limit as number })).toBe('bad_request');
    });

    test.each(['', 'ä', 'a b', 'a/b'])('refuses the cursor %j', async (cursor) => {
      expect(await codeOf(list, ann, { cursor })).toBe('bad_request');
    });

    test('a right lost during a traversal is forbidden, with and without the cursor', async () => {
      await prepare[list]();
      const { next } = await shown[list](ben, { limit: 2 });
      await group.remove([ben]);
      expect(await codeOf(list, ben, { cursor: next })).toBe('forbidden');
      expect(await codeOf(list, ben, {})).toBe('forbidden');
    });
  });

  test('an administrator who becomes a member must begin again, with its own invitations', async () => {
    const all = await prepare.invite();
    const { next } = await shown.invite(ben, { limit: 1 });
    await group.setRole(ben, 'member');
    expect(await codeOf('invite', ben, { cursor: next })).toBe('forbidden');
    const own = (await shown.invite(ben, {})).ids;
    expect(own).toHaveLength(2);
    expect(all).toEqual(expect.arrayContaining(own));
    // With the right back the cursor serves again: it is bound to no time.
    await group.setRole(ben, 'administrator');
    expect((await shown.invite(ben, { cursor: next })).ids).toHaveLength(4);
  });

  test('a member who becomes administrator continues with its own invitations, or begins again', async () => {
    for (let each = 0; each < 3; each += 1) await group.invite({}, { by: cem });
    await group.invite();
    const first = await shown.invite(cem, { limit: 1 });
    await group.setRole(cem, 'administrator');
    const rest = await shown.invite(cem, { limit: 1, cursor: first.next });
    const last = await shown.invite(cem, { cursor: rest.next });
    const own = (await invites(cem)).invites.filter(({ invite }) => invite.inviter === cem.account);
    expect([...first.ids, ...rest.ids, ...last.ids]).toEqual(
      own.map(({ invite }) => invite.invite_id),
    );
    expect((await shown.invite(cem, {})).ids).toHaveLength(4);
    await group.setRole(cem, 'member');
    expect(await codeOf('invite', cem, { cursor: first.next })).toBe('ok');
  });

  test('the cursor of one member shows another member nothing', async () => {
    for (let each = 0; each < 2; each += 1) await group.invite({}, { by: cem });
    const { next } = await shown.invite(cem, { limit: 1 });
    await group.setRole(ben, 'member');
    expect(await codeOf('invite', ben, { cursor: next })).toBe('forbidden');
    expect(await codeOf('invite', ann, { cursor: next })).toBe('ok');
  });
});

/** Rejects these accounts, those that are still there. */
async function rejectAll(accounts: readonly string[]): Promise<void> {
  for (const account of accounts) {
    const request = { group_id: group.groupId, accounts: [account] };
    await relay.codeOf('group.application.reject', request, { session: ann.session() });
  }
}
