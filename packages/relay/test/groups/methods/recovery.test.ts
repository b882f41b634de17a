import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Person } from '../../fixtures/person.ts';
import {
  accountsOf,
  bareOf,
  createRecoveryGroup,
  type RecoveryGroup,
  wait,
} from '../../fixtures/recovery-group.ts';
import { throughEveryFault } from '../../support/faults.ts';

let relay: RecoveryGroup['relay'];
let group: RecoveryGroup['group'];
let ann: RecoveryGroup['ann'];
let ben: RecoveryGroup['ben'];
let cem: RecoveryGroup['cem'];
let dora: RecoveryGroup['dora'];
let emil: RecoveryGroup['emil'];
let submit: RecoveryGroup['submit'];
let submitCode: RecoveryGroup['submitCode'];
let listCode: RecoveryGroup['listCode'];
let listPage: RecoveryGroup['listPage'];
let listed: RecoveryGroup['listed'];
let stored: RecoveryGroup['stored'];
let hint: RecoveryGroup['hint'];

beforeEach(async () => {
  ({
    relay,
    group,
    ann,
    ben,
    cem,
    dora,
    emil,
    submit,
    submitCode,
    listCode,
    listPage,
    listed,
    stored,
    hint,
  } = await createRecoveryGroup());
});
afterEach(() => relay[Symbol.asyncDispose]());

describe('05 §13.21: submitting', () => {
  test('fixes both times and changes nothing else', async () => {
    const before = await relay.dump();
    const now = relay.clock.now();
    const request = group.recoveryRequest(dora);
    expect(await submit(request)).toEqual({ accepted_at: now, expires_at: now + wait });
    const { group_recoveries, group_certificates, ...rest } = await relay.dump();
    expect(before).toMatchObject(rest);
    expect(await listPage(dora)).toEqual({
      requests: [
        {
          request,
          signer_certificate: dora.device().certificate,
          accepted_at: now,
          expires_at: now + wait,
        },
      ],
    });
    expect(relay.takeNotices()).toEqual([hint(ann, ben, cem, dora)]);
  });

  test.each([
    ['of an ordinary member', () => dora, () => [ann, ben, cem, dora]],
    ['of an administrator', () => ben, () => [ann, ben]],
    ['of the owner', () => ann, () => [ann]],
  ])('05 §15.4: a request %s is told to it and to who may process it', async (_, of, to) => {
    await group.requestRecovery(of());
    expect(relay.takeNotices()).toEqual([hint(...to())]);
  });

  test('an identical retry keeps the times and publishes no notice', async () => {
    const now = relay.clock.now();
    const request = { ...group.recoveryRequest(dora) };
    await submit(request);
    relay.takeNotices();
    relay.clock.advance(10);
    await relay.restart({ groupRecoveryWait: 10 * wait });
    // Another order of members is the same Canonical JSON.
    const turned = Object.fromEntries(Object.entries(request).reverse());
    expect(await submit(turned)).toEqual({ accepted_at: now, expires_at: now + wait });
    expect(relay.takeNotices()).toEqual([]);
  });

  test('a retry is identical by its content, whichever device sends it', async () => {
    const before = await submit(group.recoveryRequest(dora));
    relay.clock.advance(1);
    const bare = bareOf(group.recoveryRequest(dora));
    const after = await submit(group.sign({ ...bare, note: 1 }, { by: dora }));
    expect(after).not.toEqual(before);
  });

  test('different content replaces the request, with new times', async () => {
    await group.requestRecovery(dora, 'laptop');
    relay.takeNotices();
    relay.clock.advance(10);
    const now = relay.clock.now();
    const request = group.recoveryRequest(dora);
    expect(await submit(request)).toEqual({ accepted_at: now, expires_at: now + wait });
    expect(relay.takeNotices()).toEqual([hint(ann, ben, cem, dora)]);
    const { requests } = await listPage(ann);
    expect(requests.map((each) => each.request)).toEqual([request]);
    expect(requests[0]?.signer_certificate).toEqual(dora.device().certificate);
  });

  test('the same object after its expiry is a new submission', async () => {
    const request = await group.requestRecovery(dora);
    relay.takeNotices();
    relay.clock.advance(wait);
    const now = relay.clock.now();
    expect(await submit(request)).toEqual({ accepted_at: now, expires_at: now + wait });
    expect(relay.takeNotices()).toHaveLength(1);
  });

  test('unknown members are stored and covered by the signature', async () => {
    const request = group.sign({ ...bareOf(group.recoveryRequest(dora)), note: 'é' }, { by: dora });
    await submit(request);
    expect((await listPage(ann)).requests[0]?.request).toEqual(request);
    expect(await submitCode({ ...request, note: 'e' })).toBe('invalid_signature');
  });

  test.each([
    ['another type', { $type: 'x' }, 'bad_request'],
    ['a key that is none', { member_encryption_public_key: 'AA' }, 'bad_request'],
    ['an account that is none', { account: 'x' }, 'bad_request'],
    ['a group ID that is none', { group_id: 'grp_x' }, 'bad_request'],
    ['a group that is not here', { group_id: `grp_${'A'.repeat(22)}` }, 'not_found'],
    ['null', { note: null }, 'bad_request'],
  ])('%s is refused', async (_, facts, code) => {
    const request = group.sign({ ...bareOf(group.recoveryRequest(dora)), ...facts }, { by: dora });
    expect(await submitCode(request)).toBe(code);
    expect(await stored()).toEqual([]);
  });

  test('the key in use is refused', async () => {
    const { publicKey } = group.keyOf(dora);
    const request = group.recoveryRequest(dora, { member_encryption_public_key: publicKey });
    expect(await submitCode(request)).toBe('bad_request');
  });

  test('only members submit, for themselves, while the group is open', async () => {
    const request = group.recoveryRequest(dora);
    expect(await submitCode(request, emil)).toBe('forbidden');
    const frank = await Person.register(relay, 'frank');
    expect(await submitCode(group.recoveryRequest(frank), frank)).toBe('forbidden');
    expect(await relay.codeOf('group.member.recovery.submit', request)).toBe('unauthorized');
    const session = dora.accountSession();
    expect(await relay.codeOf('group.member.recovery.submit', request, { session })).toBe(
      'forbidden',
    );
    await group.ban([emil]);
    expect(await submitCode(group.recoveryRequest(emil), emil)).toBe('forbidden');
    await group.leave(dora);
    expect(await submitCode(request)).toBe('forbidden');
    await group.close();
    expect(await submitCode(group.recoveryRequest(cem), cem)).toBe('state_conflict');
    expect(await stored()).toEqual([]);
  });

  test('an account that left while the signature was verified is refused', async () => {
    const request = group.recoveryRequest(dora);
    relay.meanwhile = () => group.remove([dora]);
    expect(await submitCode(request)).toBe('forbidden');
    expect(await stored()).toEqual([]);
  });

  test('05 §12.6: a fault at any write leaves no trace', async () => {
    const request = group.recoveryRequest(dora);
    expect(await throughEveryFault(relay, () => submitCode(request))).toBeGreaterThan(0);
    expect(await stored()).toHaveLength(1);
  });
});

describe('05 §13.22: listing', () => {
  beforeEach(async () => {
    for (const person of [ann, ben, cem, dora, emil]) await group.requestRecovery(person);
  });

  test('05 §6: shows each account what its role allows', async () => {
    expect(await listed(ann)).toEqual(accountsOf(ann, ben, cem, dora, emil));
    expect(await listed(ben)).toEqual(accountsOf(ben, dora, emil));
    expect(await listed(cem)).toEqual(accountsOf(cem, dora, emil));
    expect(await listed(dora)).toEqual(accountsOf(dora));
  });

  test('05 §12.7: pages list every request once, in a stable order', async () => {
    for (const [by, all] of [
      [ann, accountsOf(ann, ben, cem, dora, emil)],
      [ben, accountsOf(ben, dora, emil)],
      [dora, accountsOf(dora)],
    ] as const) {
      const seen: string[] = [];
      let cursor: string | undefined;
      for (;;) {
        const page = await listPage(by, { limit: 1, ...(cursor && { cursor }) });
        seen.push(...page.requests.map(({ request }) => request.account));
        cursor = page.next;
        if (cursor === undefined) break;
      }
      expect(seen).toEqual(all);
    }
  });

  test('an ordinary member never gets a cursor', async () => {
    expect(await listPage(dora, { limit: 1 })).not.toHaveProperty('next');
  });

  test('a page that ends with the list has no cursor', async () => {
    expect(await listPage(ann, { limit: 5 })).not.toHaveProperty('next');
    expect(await listPage(ann, { limit: 4 })).toHaveProperty('next');
    expect(await listPage(ben, { limit: 3 })).not.toHaveProperty('next');
  });

  test('large requests make short pages of at least one', async () => {
    const note = 'x'.repeat(600_000);
    for (const person of [dora, emil]) {
      const bare = bareOf(group.recoveryRequest(person));
      await submit(group.sign({ ...bare, note }, { by: person }), person);
    }
    expect((await listPage(ann)).requests.length).toBeLessThan(5);
    const huge = { ...bareOf(group.recoveryRequest(dora)), note: 'x'.repeat(1_000_000) };
    await submit(group.sign(huge, { by: dora }));
    expect((await listPage(dora)).requests).toHaveLength(1);
  });

  test('from its expiry on a request is not listed', async () => {
    relay.clock.advance(wait - 1);
    expect(await listed(ann)).toHaveLength(5);
    relay.clock.advance(1);
    for (const person of [ann, ben, dora]) expect(await listed(person)).toEqual([]);
  });

  test('a cursor survives changes and a restart, but not the loss of its right', async () => {
    const { next } = await listPage(ann, { limit: 1 });
    const cursor = next as string;
    await relay.restart();
    expect((await listPage(ann, { cursor })).requests).toHaveLength(4);
    expect(await listCode(ben, { cursor })).toBe('forbidden');
    expect(await listCode(dora, { cursor })).toBe('forbidden');
    const own = (await listPage(ben, { limit: 1 })).next as string;
    await group.transfer(ben);
    expect(await listCode(ann, { cursor })).toBe('forbidden');
    expect((await listPage(ben, { cursor: own })).requests.length).toBeGreaterThan(0);
    expect(await listCode(ann)).toBe('ok');
  });

  test.each([
    ['a limit of nothing', { limit: 0 }, 'bad_request'],
    ['a cursor that is none', { cursor: 'x' }, 'bad_request'],
    ['an empty cursor', { cursor: '' }, 'bad_request'],
    ['a group that is not here', { group_id: `grp_${'A'.repeat(22)}` }, 'not_found'],
  ])('%s', async (_, params, code) => {
    expect(await listCode(ann, params)).toBe(code);
  });

  test('strangers and banned accounts are refused', async () => {
    const frank = await Person.register(relay, 'frank');
    expect(await listCode(frank)).toBe('forbidden');
    await group.ban([emil]);
    expect(await listCode(emil)).toBe('forbidden');
    expect(await listed(ann)).toEqual(accountsOf(ann, ben, cem, dora));
  });

  test('opens no interval and publishes no notice', async () => {
    const { group_intervals } = await relay.dump();
    relay.takeNotices();
    const params = { group_id: group.groupId };
    await relay.call('group.member.recovery.list', params, { session: dora.session('laptop') });
    expect(await relay.rows('group_intervals')).toEqual(group_intervals);
    expect(relay.takeNotices()).toEqual([]);
  });
});
