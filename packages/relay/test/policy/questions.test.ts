/** `policy` (docs/operations.md, "A program that decides"): when it is asked, and what an answer means. */
import type { JsonObject } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { PolicyQuestion } from '../../src/context.ts';
import { nextTurn } from '../../src/event-loop.ts';
import { AskedPolicy } from '../../src/policy/policy.ts';
import { allowAccount } from '../../src/registration/account-store.ts';
import { TestChannel, text } from '../fixtures/channel.ts';
import { TestGroup } from '../fixtures/group.ts';
import { Person } from '../fixtures/person.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann');
const ben = relay.person('ben');

/** What was asked since the test began. */
let asked: PolicyQuestion[];
/** What the program answers. */
let answer: boolean | undefined;
const policy = (onFailure: 'refuse' | 'allow' = 'refuse') =>
  new AskedPolicy(
    {
      ask: async (question, over) => {
        asked.push(question);
        over?.();
        return answer;
      },
    },
    relay.context,
    onFailure,
  );
beforeEach(() => {
  asked = [];
  answer = true;
});

/** Expects that a call is refused with a code, asked once, and that nothing of it is stored. */
async function expectRefused(method: string, params: JsonObject, by: Person, code: string) {
  const before = await relay.dump();
  asked = [];
  expect(await relay.codeOf(method, params, { session: by.session() })).toBe(code);
  expect(asked).toHaveLength(1);
  expect(await relay.dump()).toEqual(before);
}

describe('policy: the program is asked once before', () => {
  test('a new account is activated, not for its repeats, nor for accounts that may not come', async () => {
    relay.policy = policy();
    const dan = new Person(relay, 'dan');
    await dan.addDevice('phone');
    await dan.publishState();
    expect(asked).toEqual([]);
    const fay = new Person(relay, 'fay');
    await fay.addDevice('phone');
    const unstaged = await fay.route();
    expect(
      await relay.codeOf('account.route.publish', unstaged, { session: fay.accountSession() }),
    ).not.toBe('ok');
    expect(asked).toEqual([]);
    answer = false;
    const route = await dan.route();
    const before = await relay.dump();
    const publish = () =>
      relay.codeOf('account.route.publish', route, { session: dan.accountSession() });
    expect(await publish()).toBe('forbidden');
    expect(await relay.dump()).toEqual(before);
    answer = true;
    expect(await publish()).toBe('ok');
    const question = { ask: 'account', account: dan.account, address: '127.0.0.1' };
    expect(asked).toEqual([question, question]);
    answer = false;
    expect(await publish()).toBe('ok');
    await dan.publishState(await dan.state());
    await dan.publishRoute();
    expect(asked).toHaveLength(2);
    relay.registration.mode = 'list';
    const eve = new Person(relay, 'eve');
    await eve.addDevice('phone');
    const options = { session: eve.accountSession() };
    const draft = await eve.route();
    expect(await relay.codeOf('account.route.publish', draft, options)).not.toBe('ok');
    expect(asked).toHaveLength(2);
  });

  test('a new account is activated, also if its state or its right comes while its route is published', async () => {
    relay.policy = policy();
    answer = false;
    const newcomer = async (name: string) => {
      const person = new Person(relay, name);
      await person.addDevice('phone');
      return person;
    };
    /** Publishes a route, and runs `between` before the first transaction that may store it. */
    const publish = async (by: Person, between: () => Promise<unknown>) => {
      const route = await by.route();
      const { storage } = relay.context;
      const write = storage.write.bind(storage);
      const spy = vi.spyOn(storage, 'write').mockImplementationOnce(async (...args) => {
        await between();
        return await write(...args);
      });
      const options = { session: by.accountSession() };
      const code = await relay.codeOf('account.route.publish', route, options);
      spy.mockRestore();
      return code;
    };
    const gil = await newcomer('gil');
    expect(await publish(gil, () => gil.publishState())).toBe('forbidden');
    expect(asked).toMatchObject([{ ask: 'account', account: gil.account }]);
    const hal = await newcomer('hal');
    await hal.publishState();
    relay.registration.mode = 'list';
    const { storage } = relay.context;
    const allow = () =>
      storage.write('registration', (tx) =>
        allowAccount(tx, { account: hal.account, allowedAt: 1 }, 1),
      );
    expect(await publish(hal, allow)).toBe('forbidden');
    expect(asked).toHaveLength(2);
    expect(await relay.rows('account_routes')).toHaveLength(2);
  });

  test('a post is stored, and an edit; the question has it as it was signed', async () => {
    const channel = await TestChannel.create(relay, ann);
    relay.policy = policy();
    const post = channel.newPost({ body: text('one') });
    const sequence = await channel.publish(post);
    expect(await channel.publish(post)).toBe(sequence);
    const edit = channel.newEdit(sequence, { body: text('two') });
    const options = { session: ann.session() };
    expect(await relay.codeOf('channel.post.edit', edit, options)).toBe('ok');
    expect(await relay.codeOf('channel.post.edit', edit, options)).toBe('ok');
    const question = {
      ...{ ask: 'post', account: ann.account, address: '127.0.0.1' },
      channel: channel.channelId,
    };
    expect(asked).toEqual([
      { ...question, post },
      { ...question, post: edit },
    ]);
    answer = false;
    await expectRefused('channel.post', channel.newPost(), ann, 'forbidden');
    const again = channel.newEdit(sequence, { body: text('three') });
    await expectRefused('channel.post.edit', again, ann, 'forbidden');
    // What removes, and what was stored before, is no question.
    expect(await channel.publish(post)).toBe(sequence);
    await channel.delete(sequence);
    expect(asked).toHaveLength(1);
  });

  test('a group is created', async () => {
    relay.policy = policy();
    const { params } = TestGroup.draft(relay, ann);
    const options = { session: ann.session() };
    expect(await relay.codeOf('group.create', params, options)).toBe('ok');
    expect(asked).toEqual([{ ask: 'group', account: ann.account, address: '127.0.0.1' }]);
    expect(await relay.codeOf('group.create', params, options)).toBe('state_conflict');
    expect(asked).toHaveLength(1);
    answer = false;
    await expectRefused('group.create', TestGroup.draft(relay, ann).params, ann, 'forbidden');
  });

  test('but not for a caller without the right, or whose signature is wrong', async () => {
    const channel = await TestChannel.create(relay, ann);
    relay.policy = policy();
    const sequence = await channel.post();
    asked = [];
    const refused = async (method: string, params: JsonObject, by = ben) =>
      await relay.codeOf(method, params, { session: by.session() });
    expect(await refused('channel.post', channel.newPost(undefined, { by: ben }))).toBe(
      'forbidden',
    );
    const edit = channel.newEdit(sequence, { body: text('two') }, { by: ben });
    expect(await refused('channel.post.edit', edit)).toBe('forbidden');
    const forged = { ...channel.newPost(), body: text('forged') };
    expect(await refused('channel.post', forged, ann)).toBe('invalid_signature');
    const missing = channel.newEdit(99, { body: text('two') });
    expect(await refused('channel.post.edit', missing, ann)).toBe('not_found');
    const { params } = TestGroup.draft(relay, ann);
    const created = { ...params, create: { ...params.create, name: 'forged' } };
    expect(await refused('group.create', created, ann)).toBe('invalid_signature');
    await relay.restart({ groupsOfAccount: 1 });
    await TestGroup.create(relay, ann);
    asked = [];
    expect(await refused('group.create', params, ann)).toBe('rate_limited');
    expect(asked).toEqual([]);
  });
});

describe('policy.onFailure', () => {
  test('refuse: without an answer a call is temporarily_unavailable, and nothing is stored', async () => {
    const channel = await TestChannel.create(relay, ann);
    relay.policy = policy();
    answer = undefined;
    await expectRefused('channel.post', channel.newPost(), ann, 'temporarily_unavailable');
  });

  test('allow: without an answer a call goes on; what the program refuses is refused', async () => {
    const channel = await TestChannel.create(relay, ann);
    relay.policy = policy('allow');
    answer = undefined;
    await channel.post();
    answer = false;
    await expectRefused('channel.post', channel.newPost(), ann, 'forbidden');
  });
});

describe('limits of questions', () => {
  const of = (account: string) => ({ ask: 'group', account, address: '' }) as const;

  test('64 are under way at once; of one account 8 wait, others have their turn, and a flood is refused', async () => {
    const open: { readonly account: string; readonly end: () => void }[] = [];
    const slow = new AskedPolicy(
      {
        ask: async ({ account }, over) => {
          await new Promise<void>((end) => open.push({ account, end }));
          over?.();
          return true;
        },
      },
      relay.context,
      'allow',
    );
    const answered: string[] = [];
    const ask = (account: string) =>
      slow.ask(of(account)).then(
        () => void answered.push(account),
        ({ code }) => void answered.push(code),
      );
    const begun = Array.from({ length: 72 }, () => ask('flood'));
    await expect.poll(() => open.length).toBe(64);
    begun.push(ask('flood'), ask('quiet'));
    await expect.poll(() => answered).toEqual(['rate_limited']);
    // The next two turns are those of one account each.
    open.shift()?.end();
    open.shift()?.end();
    await expect.poll(() => open.length).toBe(64);
    expect(new Set(open.slice(-2).map(({ account }) => account))).toEqual(
      new Set(['flood', 'quiet']),
    );
    for (let left = 71; left > 0; left -= 1) {
      await expect.poll(() => open.length).toBeGreaterThan(0);
      open.shift()?.end();
    }
    await Promise.all(begun);
    expect(answered.filter((one) => one === 'flood')).toHaveLength(72);
  });

  test('the next is asked when the program is done with one, not when the time of one has passed', async () => {
    const open: ((() => void) | undefined)[] = [];
    const late = new AskedPolicy(
      {
        ask: async (_, over) => {
          open.push(over);
          return undefined;
        },
      },
      relay.context,
      'allow',
    );
    await Promise.all(Array.from({ length: 64 }, (_, count) => late.ask(of(`account ${count}`))));
    const next = late.ask(of('one more'));
    await nextTurn();
    expect(open).toHaveLength(64);
    open[0]?.();
    await next;
    expect(open).toHaveLength(65);
  });

  test('above 1,024 that wait, a call is temporarily_unavailable, also with onFailure allow', async () => {
    const never = new AskedPolicy({ ask: () => new Promise(() => {}) }, relay.context, 'allow');
    for (let count = 0; count < 64 + 1_024; count += 1) void never.ask(of(`account ${count}`));
    await expect(never.ask(of('one more'))).rejects.toMatchObject({
      code: 'temporarily_unavailable',
    });
  });

  /** A program that answers the first open question on demand, and what became of each. */
  function slowly() {
    const open: (() => void)[] = [];
    const asked: string[] = [];
    const answers = new Map<string, number>();
    const slow = new AskedPolicy(
      {
        ask: async ({ account }, over) => {
          asked.push(account);
          await new Promise<void>((end) => open.push(end));
          over?.();
          return true;
        },
      },
      relay.context,
      'allow',
    );
    const note = (what: string) => void answers.set(what, (answers.get(what) ?? 0) + 1);
    const ask = async (who: string, account: string, homeRelay?: string) =>
      await slow.ask(of(account), homeRelay).then(
        () => note(`${who} ok`),
        ({ code }) => note(`${who} ${code}`),
      );
    const answer = async (count: number) => {
      for (let answered = 0; answered < count; answered += 1) {
        open.shift()?.();
        await nextTurn();
      }
    };
    return { slow, asked, answer, answers, ask };
  }

  test('accounts that fill all places do not shut others out: the newest of the one with most ends', async () => {
    const { answer, answers, ask } = slowly();
    // They ask again after each answer, as many as they may.
    const flood = async (account: string): Promise<void> => {
      await ask('flood', account);
      await nextTurn();
      if (isFlooded) void flood(account);
    };
    let isFlooded = true;
    for (let count = 0; count < 136 * 8; count += 1) void flood(`flood ${count % 136}`);
    for (let count = 0; count < 30; count += 1) {
      void ask('honest', `honest ${count}`);
      await nextTurn();
      await answer(10);
    }
    await answer(100);
    isFlooded = false;
    expect(answers.get('flood temporarily_unavailable')).toBeGreaterThan(0);
    expect(answers.get('honest ok')).toBe(30);
  });

  test('all accounts of another relay have one turn together, all new accounts of a network too', async () => {
    const { slow, asked, answer, answers, ask } = slowly();
    for (let count = 0; count < 64; count += 1) void ask('first', `first ${count}`);
    for (let count = 0; count < 1_024; count += 1) void ask('guest', `guest ${count}`, 'N1');
    const address = (count: number) => `2001:db8:1:${count.toString(16)}::/64`;
    for (let count = 0; count < 600; count += 1) {
      const account = `new ${count}`;
      void slow.ask({ ask: 'account', account, address: address(count) }).catch(() => {});
    }
    for (const account of ['a', 'b', 'c']) void ask('own', account);
    await answer(21);
    // Half of the places each, and those of this relay are taken from them.
    expect(answers.get('guest temporarily_unavailable')).toBe(512 + 2);
    const kinds = asked.slice(64).map((account) => account.split(' ', 1)[0]);
    expect(kinds.slice(0, 5).sort()).toEqual(['a', 'b', 'c', 'guest', 'new']);
    const counted = (kind: string) => kinds.filter((one) => one === kind).length;
    expect(Math.abs(counted('guest') - counted('new'))).toBeLessThanOrEqual(1);
  });

  test('an account that floods ends its own newest question, not those of its relay', async () => {
    const { asked, answer, answers, ask } = slowly();
    for (let count = 0; count < 64; count += 1) void ask('first', `first ${count}`);
    for (let count = 0; count < 1_024; count += 1) void ask('flood', `flood ${count % 128}`, 'N1');
    void ask('quiet', 'quiet', 'N1');
    await nextTurn();
    expect(answers).toEqual(new Map([['flood temporarily_unavailable', 1]]));
    await answer(150);
    expect(asked).toContain('quiet');
  });
});
