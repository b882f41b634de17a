/** 02 §18: what a relay does with accounts that its operator blocked. */
import { accountAuthInput, encodeBase64url } from '@posthouse/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { BlockList, blockAccount, unblock } from '../../src/blocks/index.ts';
import type { ConnectionBinding } from '../../src/dispatch/call.ts';
import type { RelayLimits } from '../../src/limits.ts';
import type { Session } from '../../src/sessions/session.ts';
import type { Person } from '../fixtures/person.ts';
import { signIn, signInCode } from '../fixtures/sign-in.ts';
import { type InProcessRelay, network } from '../support/in-process-relay.ts';
import { origin } from '../support/modules.ts';
import { wiredRelays } from '../support/wired-relays.ts';

const wired = wiredRelays(2);
const [relay, other] = wired.relays as [InProcessRelay, InProcessRelay];
const ann = relay.person('ann');
const ben = relay.person('ben');
const eve = other.person('eve');

/** Blocks a person; this process knows it at once. */
async function block(person: Person, endsAt?: number, limits: Partial<RelayLimits> = {}) {
  const { clock, context } = relay;
  const isNew = await blockAccount(
    context.storage,
    { id: person.account, reason: '', endsAt },
    { now: clock.now(), limits: { ...context.limits, ...limits } },
  );
  await context.blocks.refresh();
  return isNew;
}

/** Opens a session with the account key; returns the code. */
async function accountSignIn(person: Person): Promise<string> {
  const { account, publicKey } = person.signer;
  const { nonce } = (await relay.call('auth.challenge', { account })) as { nonce: string };
  const input = accountAuthInput(network, {
    ...{ relay_id: relay.relayId, origin, account, account_public_key: publicKey, nonce },
  });
  return await relay.codeOf('auth.account.verify', {
    ...{ nonce, account_public_key: publicKey },
    account_signature: encodeBase64url(await person.signer.sign(input)),
  });
}

const send = (from: Person, to: Person) => {
  const message = from.message(to, from === to ? {} : { authorization: to.grant(from) });
  const at = from === eve ? other : relay;
  return at.codeOf('message.send', message, { session: from.session() });
};
/** Statuses of what a relay was to deliver. */
const statuses = async (at: InProcessRelay) =>
  (await at.rows('sent_results')).map(({ status }) => status);

describe('a blocked account', () => {
  test('cannot sign in, with a device or the account key; what it proves is verified first', async () => {
    await block(ann);
    expect([await signInCode(relay, ann), await accountSignIn(ann)]).toEqual([
      'forbidden',
      'forbidden',
    ]);
    expect(await signInCode(relay, ben)).toBe('ok');
    const mallory = { ...ann, account: ann.account, device: () => ann.device() } as Person;
    const { certificate } = ann.device();
    const { nonce } = (await relay.call('auth.challenge', { account: mallory.account })) as {
      nonce: string;
    };
    const forged = {
      ...{ nonce, timestamp: relay.clock.now(), signer_certificate: certificate },
      device_signature: encodeBase64url(new Uint8Array(64)),
    };
    expect(await relay.codeOf('auth.device.verify', forged)).toBe('invalid_signature');
  });

  test('loses its sessions, and none is valid that was opened at that moment', async () => {
    const { sessions, storage } = relay.context;
    const session = await signIn(relay, ann);
    const bens = await signIn(relay, ben);
    await block(ann);
    expect(await relay.rows('auth_sessions')).toMatchObject([{ account: ben.account }]);
    expect([await sessions.confirm(session), await sessions.confirm(bens)]).toEqual([
      undefined,
      bens,
    ]);
    await storage.write('test', (tx) =>
      tx.run(
        "INSERT INTO auth_sessions VALUES ('late', ?, 'account', NULL, ?, 9999999999, 0)",
        ...[ann.account, origin],
      ),
    );
    const late = { id: 'late', mode: 'account', account: ann.account, expiresAt: 1e10 } as const;
    expect(await sessions.confirm(late)).toBeUndefined();
  });

  test('has no session on a connection that heard of no block, which costs no statement, and its binding ends', async () => {
    const ended: Session[] = [];
    const session = ann.session();
    const connection: ConnectionBinding = {
      bound: { session, dead: false },
      bind: () => {},
      end: (one) => void ended.push(one),
      setSubscriptions: async () => {},
    };
    const read = { after: -1, limit: 10 };
    const call = () => relay.codeOf('message.timeline.sync', read, { connection });
    expect([await call(), ended]).toEqual(['ok', []]);
    // As if the connection was bound at that moment.
    await block(ann);
    let statements = 0;
    relay.faults.beforeStatement = () => {
      statements += 1;
    };
    expect([await call(), ended, statements]).toEqual(['unauthorized', [session], 0]);
  });

  test('gets no message, of an account here or elsewhere, and no hint; a repeat is answered as before', async () => {
    const earlier = ben.message(ann, { authorization: ann.grant(ben) });
    const again = () => relay.call('message.send', earlier, { session: ben.session() });
    const accepted = await again();
    await block(ann);
    relay.takeNotices();
    expect(await again()).toEqual(accepted);
    expect(await send(ben, ann)).toBe('forbidden');
    expect(await send(eve, ann)).toBe('ok');
    await other.runJob('messages.delivery');
    expect(await statuses(other)).toEqual(['failed']);
    expect(await relay.rows('timeline_records')).toHaveLength(1);
    expect(relay.takeNotices().filter(({ kind }) => kind === 'timeline')).toEqual([]);
    expect(await send(ben, ben)).toBe('ok');
  });

  test('at home elsewhere sends nothing to accounts here, and reads no device state', async () => {
    await block(eve);
    expect(await send(eve, ann)).toBe('ok');
    await other.runJob('messages.delivery');
    expect(await statuses(other)).toEqual(['failed']);
    expect(await relay.rows('timeline_records')).toEqual([]);
    expect(await signInCode(relay, eve)).toBe('forbidden');
    const query = eve.stateQuery(ann.account, ann.grant(eve));
    expect(await other.codeOf('device.state.resolve', query, { session: eve.session() })).toBe(
      'forbidden',
    );
    await unblock(relay.context.storage, { kind: 'account', id: eve.account }, relay.clock.now());
    await relay.context.blocks.refresh();
    expect(await other.codeOf('device.state.resolve', query, { session: eve.session() })).toBe(
      'ok',
    );
  });

  test('is still answered for: others verify what it signed', async () => {
    await ann.publishProfile();
    await block(ann);
    const session = ben.session();
    const { account } = ann;
    expect(await relay.codeOf('profile.resolve', { account }, { session })).toBe('ok');
    expect(await relay.codeOf('device.state.resolve', { account }, { session })).toBe('ok');
    expect(await relay.codeOf('account.route.resolve', { account })).toBe('ok');
  });
});

describe('a block', () => {
  test('ends by itself, at its second and whether its row is gone or not', async () => {
    const endsAt = relay.clock.now() + 100;
    await block(ann, endsAt);
    relay.clock.advance(99);
    expect(await signInCode(relay, ann)).toBe('forbidden');
    expect(await relay.runJob('blocks.ended')).toBe(endsAt);
    relay.clock.advance(1);
    expect(await signInCode(relay, ann)).toBe('ok');
    expect(await relay.rows('blocks')).toHaveLength(1);
    expect(await relay.runJob('blocks.ended')).toBeUndefined();
    expect(await relay.rows('blocks')).toEqual([]);
    // One more block of the account is a new one.
    expect(await block(ann, relay.clock.now() + 10)).toBe(true);
  });

  test('that is repeated gets the new end, or none', async () => {
    const { clock } = relay;
    await block(ann, clock.now() + 10);
    expect(await block(ann)).toBe(false);
    clock.advance(10);
    expect(await signInCode(relay, ann)).toBe('forbidden');
    await block(ann, clock.now() + 5);
    clock.advance(5);
    expect(await signInCode(relay, ann)).toBe('ok');
  });

  test('needs room: limits.blockedAccounts; those that ended take none', async () => {
    const limits = { blockedAccounts: 2 };
    await block(ann, relay.clock.now() + 10, limits);
    await block(ben, undefined, limits);
    await expect(block(eve, undefined, limits)).rejects.toMatchObject({
      code: 'state_conflict',
      message: '2 accounts are blocked: remove one, or raise limits.blockedAccounts',
    });
    expect(await block(ben, undefined, limits)).toBe(false);
    relay.clock.advance(10);
    expect(await block(eve, undefined, limits)).toBe(true);
  });
});

describe('the blocks in the memory of a process', () => {
  let there: BlockList;
  let begun: (readonly string[])[];
  beforeEach(() => {
    there = new BlockList(relay.context);
    begun = [];
    there.onChange(({ accounts }) => begun.push(accounts));
  });

  test('are read again only if they changed, and say which began', async () => {
    await there.refresh();
    await block(ann);
    await there.refresh();
    await block(ben);
    let statements = 0;
    relay.faults.beforeStatement = () => {
      statements += 1;
    };
    await there.refresh();
    expect([statements, there.hasAccount(ann.account), there.hasAccount(eve.account)]).toEqual([
      ...[2, true, false],
    ]);
    await there.refresh();
    expect(statements).toBe(3);
    expect(begun).toEqual([[], [ann.account], [ben.account]]);
    await unblock(relay.context.storage, { kind: 'account', id: ann.account }, relay.clock.now());
    await there.refresh();
    expect([there.hasAccount(ann.account), there.hasAccount(ben.account)]).toEqual([false, true]);
  });

  test('say that a block began again if the one before it had ended, and not if it was replaced', async () => {
    const { clock } = relay;
    await block(ann, clock.now() + 10);
    await there.refresh();
    clock.advance(9);
    await block(ann, clock.now() + 10);
    await there.refresh();
    clock.advance(10);
    expect(there.hasAccount(ann.account)).toBe(false);
    await block(ann);
    await there.refresh();
    expect(begun).toEqual([[ann.account], [], [ann.account]]);
  });

  test('are read in pages, all of them', async () => {
    const { storage } = relay.context;
    await storage.write('blocks', async (tx) => {
      for (let at = 0; at < 620; at += 1) {
        const kind = ['account', 'address', 'relay'][at % 3] as string;
        const id = kind === 'address' ? `10.0.${at >> 8}.${at & 255}` : `id ${at}`;
        await tx.run('INSERT INTO blocks VALUES (?, ?, ?, ?, NULL)', kind, id, '', 0);
      }
    });
    await there.refresh();
    for (let at = 0; at < 620; at += 1) {
      const found =
        at % 3 === 1
          ? there.hasAddress(`10.0.${at >> 8}.${at & 255}`)
          : there.hasAccount(`id ${at}`);
      expect([at, found]).toEqual([at, at % 3 !== 2]);
    }
  });
});
