import { describe, expect, test } from 'vitest';
import {
  checkGroupHistorySecretSync,
  checkGroupStateRequest,
  checkGroupStateSync,
  encodeBase64url,
} from '../../src/index.ts';
import { codeOf, fill, network, without } from './accounts.ts';

const groupId = `grp_${encodeBase64url(fill(1, 16))}`;
const otherId = `grp_${encodeBase64url(fill(2, 16))}`;
const relayId = `0x${'ab'.repeat(20)}`;
const key = encodeBase64url(fill(3));
const $ = (name: string) => ({ $type: network.type(`account.group.${name}`) });

describe('03 §19: AccountGroupPrivateStateRequest', () => {
  const check = (value: unknown) => codeOf(() => checkGroupStateRequest(network, value));
  test('one group, or all', () => {
    expect(check($('state.request'))).toBeUndefined();
    expect(check({ ...$('state.request'), group_id: groupId })).toBeUndefined();
  });
  test.each([
    { group_id: null },
    { group_id: '' },
    { group_id: groupId.slice(0, -1) },
    { group_id: `dev_${groupId.slice(4)}` },
    { $context: network.context },
    { $type: 'svc.account.group.state.sync' },
    { x: null },
  ])('%j is refused', (change) => {
    expect(check({ ...$('state.request'), ...change })).toBe('bad_request');
  });
});

describe('03 §19: AccountGroupPrivateStateSync', () => {
  const check = (states: unknown) =>
    codeOf(() => checkGroupStateSync(network, { ...$('state.sync'), states }));
  const state = { group_id: groupId, relay_id: relayId, member_encryption_private_key: key };
  test('one and several', () => {
    expect(check([state])).toBeUndefined();
    expect(check([state, { ...state, group_id: otherId }])).toBeUndefined();
  });
  test('none, and a group twice', () => {
    expect([check([]), check(undefined), check(null)]).toEqual(Array(3).fill('bad_request'));
    const renewed = { ...state, member_encryption_private_key: encodeBase64url(fill(4)) };
    expect(check([state, renewed])).toBe('bad_request');
  });
  test.each(Object.keys(state))('an element without %s is refused', (name) => {
    expect(check([without(state, name)])).toBe('bad_request');
  });
  test.each([
    { relay_id: relayId.toUpperCase() },
    { member_encryption_private_key: encodeBase64url(fill(3, 31)) },
    { member_encryption_private_key: encodeBase64url(fill(3, 33)) },
    { x: null },
    { $context: network.context },
  ])('%j is refused', (change) => {
    expect(check([{ ...state, ...change }])).toBe('bad_request');
  });
});

describe('03 §19: AccountGroupHistorySecretSync', () => {
  const check = (secrets: unknown) =>
    codeOf(() => checkGroupHistorySecretSync(network, { ...$('history_secret.sync'), secrets }));
  const secret = { group_id: groupId, epoch: 0, application_secret: key };
  test('several epochs of several groups', () => {
    const secrets = [secret, { ...secret, epoch: 1 }, { ...secret, group_id: otherId }];
    expect(check(secrets)).toBeUndefined();
  });
  test('none, and one epoch of one group twice', () => {
    expect([check([]), check(undefined)]).toEqual(['bad_request', 'bad_request']);
    const other = { ...secret, application_secret: encodeBase64url(fill(4)) };
    expect(check([secret, other])).toBe('bad_request');
  });
  test.each(Object.keys(secret))('an element without %s is refused', (name) => {
    expect(check([without(secret, name)])).toBe('bad_request');
  });
  test.each([
    { epoch: -1 },
    { epoch: '0' },
    { epoch: 2 ** 53 },
    { application_secret: 'AA' },
    { x: null },
    { $context: network.context },
  ])('%j is refused', (change) => {
    expect(check([{ ...secret, ...change }])).toBe('bad_request');
  });
  test('an epoch at the edge of safe integers passes', () => {
    expect(check([{ ...secret, epoch: Number.MAX_SAFE_INTEGER }])).toBeUndefined();
  });
});
