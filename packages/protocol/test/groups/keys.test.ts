import { describe, expect, test } from 'vitest';
import { keysOfEpoch } from '../../src/groups/key-history.ts';
import type { GroupKeyReader } from '../../src/groups/key-sync.ts';
import {
  advanceGroup,
  checkGroupKeyPage,
  clientSecretCommitment,
  deriveEpochApplicationSecret,
  extendKeyHistory,
  type GroupKeyEntry,
  type GroupKeyHistory,
  type GroupKeyPage,
  type GroupSecretBox,
  openGroupKeys,
  sealClientSecret,
  sealRelaySecret,
  verifyGroupSyncPage,
} from '../../src/index.ts';
import {
  alice,
  anchor,
  bob,
  carol,
  clientSecret,
  codeOf,
  commitment,
  counting,
  fill,
  groupId,
  memberOf,
  network,
  people,
  publicKey,
  Story,
} from './fixture.ts';

const newPrivateKey = fill(99, 32);
const newKey = publicKey(newPrivateKey);
const nextSecret = fill(78, 32);
const nextCommitment = clientSecretCommitment(network, groupId, nextSecret);

/**
 * Epochs: 0 creation, 1 Bob admitted, 2 relay, 3 Carol admitted, 4 Bob's key replaced,
 * 5 secret rotated, 6 Carol removed.
 */
function story(): Story {
  const made = new Story();
  made.admit(bob);
  made.rotate();
  made.admit(carol);
  made.do(alice, 'group.update', { name: 'x' });
  const members = [memberOf(bob, newKey)];
  made.do(alice, 'group.member.recovery.approval', { members });
  made.do(alice, 'group.secret.rotation', { client_secret_commitment: nextCommitment });
  made.do(alice, 'group.member.removal', { accounts: [carol.account] });
  return made;
}

const outcomesOf = (made: Story) => {
  const certificates = people.map((each) => each.certificate);
  const page = { events: made.events, certificates, has_more: false };
  return advanceGroup(network, anchor, verifyGroupSyncPage(network, page, {})).outcomes;
};
const outcomes = outcomesOf(story());
const historyOf = (account: string): GroupKeyHistory => extendKeyHistory([], account, outcomes);

describe('05 §7.5: the history of keys', () => {
  test('it has every epoch, with the commitment and the own key of that time', () => {
    expect(historyOf(bob.account)).toEqual([
      { client_secret_commitment: commitment, epochs: [0] },
      {
        client_secret_commitment: commitment,
        member_encryption_public_key: bob.memberKey,
        epochs: [1, 2, 3],
      },
      {
        client_secret_commitment: commitment,
        member_encryption_public_key: newKey,
        epochs: [4],
      },
      {
        client_secret_commitment: nextCommitment,
        member_encryption_public_key: newKey,
        epochs: [5, 6],
      },
    ]);
  });

  test('leaving ends the key, the owner has one from the beginning', () => {
    expect(keysOfEpoch(historyOf(carol.account), 5)).toMatchObject(memberKeyOf(carol.memberKey));
    expect(keysOfEpoch(historyOf(carol.account), 6)).toEqual({
      client_secret_commitment: nextCommitment,
      epochs: [6],
    });
    expect(keysOfEpoch(historyOf(alice.account), 0)).toMatchObject(memberKeyOf(alice.memberKey));
  });

  test('an epoch that was skipped or not reached has no keys', () => {
    expect(keysOfEpoch(historyOf(bob.account), 7)).toBeUndefined();
    expect(keysOfEpoch([], 0)).toBeUndefined();
    const sparse = [{ client_secret_commitment: commitment, epochs: [0, 5, 9] }];
    expect([0, 4, 5, 6, 9, 10].map((each) => keysOfEpoch(sparse, each) !== undefined)).toEqual([
      true,
      false,
      true,
      false,
      true,
      false,
    ]);
  });

  test('page by page it becomes the same, and the older value stays', () => {
    let history: GroupKeyHistory = [];
    for (const outcome of outcomes) {
      const before = JSON.stringify(history);
      const next = extendKeyHistory(history, bob.account, [outcome]);
      expect(JSON.stringify(history)).toBe(before);
      history = next;
    }
    expect(history).toEqual(historyOf(bob.account));
  });

  test('it begins with the creation', () => {
    expect(() => extendKeyHistory([], bob.account, outcomes.slice(1))).toThrow(TypeError);
  });

  const memberKeyOf = (member_encryption_public_key: string) => ({ member_encryption_public_key });
});

describe('05 §4.11, §7.5: a page of keys', () => {
  const random = counting();
  const relaySecretOf = (epoch: number) => fill(100 + epoch, 32);
  const relayBox = (epoch: number, at = epoch): GroupSecretBox =>
    sealRelaySecret(
      network,
      { group_id: groupId, account: bob.account, device_id: bob.deviceId, epoch: at },
      { deviceKey: bob.certificate.encryption_public_key, secret: relaySecretOf(epoch), random },
    );
  const clientBox = (key: string, secret = clientSecret, named?: string): GroupSecretBox =>
    sealClientSecret(
      network,
      {
        group_id: groupId,
        account: bob.account,
        member_encryption_public_key: key,
        client_secret_commitment: named ?? clientSecretCommitment(network, groupId, secret),
      },
      { secret, random },
    );
  const entry = (epoch: number, client_secret_box?: GroupSecretBox): GroupKeyEntry => ({
    epoch,
    relay_secret_box: relayBox(epoch),
    ...(client_secret_box !== undefined && { client_secret_box }),
  });
  const full = (): GroupKeyEntry[] => [
    entry(1, clientBox(bob.memberKey)),
    entry(2),
    entry(3),
    entry(4, clientBox(newKey)),
    entry(5, clientBox(newKey, nextSecret)),
    entry(6),
  ];
  const reader = (changes: Partial<GroupKeyReader> = {}): GroupKeyReader => ({
    group_id: groupId,
    account: bob.account,
    deviceId: bob.deviceId,
    history: historyOf(bob.account),
    devicePrivateKey: bob.devicePrivateKey,
    memberPrivateKey: (key) =>
      new Map([
        [bob.memberKey, bob.memberPrivateKey],
        [newKey, newPrivateKey],
      ]).get(key),
    ...changes,
  });
  const open = (keys: GroupKeyEntry[], by = reader()) => {
    const page: GroupKeyPage = { keys, has_more: false };
    checkGroupKeyPage(page, {});
    return openGroupKeys(network, page, by);
  };
  const statuses = (keys: GroupKeyEntry[], by = reader()) =>
    open(keys, by).map((result) => result.status);

  test('every epoch gives its application secret', () => {
    const results = open(full());
    for (const result of results) {
      if (result.status !== 'verified') throw new Error(`${result.epoch}: ${result.status}`);
      const rotated = result.epoch >= 5;
      const secret = rotated ? nextSecret : clientSecret;
      expect(result.clientSecret).toEqual(secret);
      expect(result.applicationSecret).toEqual(
        deriveEpochApplicationSecret(network, {
          group_id: groupId,
          epoch: result.epoch,
          client_secret_commitment: rotated ? nextCommitment : commitment,
          clientSecret: secret,
          relaySecret: relaySecretOf(result.epoch),
        }),
      );
    }
    expect(results.map((result) => result.epoch)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test('adjacent means adjacent on the page, not in number', () => {
    const [first, , third] = full() as [GroupKeyEntry, GroupKeyEntry, GroupKeyEntry];
    expect(statuses([first, third])).toEqual(['verified', 'verified']);
  });

  test('a box is required if key or commitment changed', () => {
    const keys = full().map(({ client_secret_box, ...rest }, index) =>
      index === 0 ? { ...rest, client_secret_box } : rest,
    ) as GroupKeyEntry[];
    expect(statuses(keys)).toEqual([
      'verified',
      'verified',
      'verified',
      'missing_box',
      'missing_box',
      'missing_box',
    ]);
  });

  test('a box more than needed is used like any other', () => {
    const keys = full();
    keys[1] = entry(2, clientBox(bob.memberKey));
    expect(statuses(keys)).toEqual(Array(6).fill('verified'));
    keys[1] = entry(2, clientBox(newKey));
    expect(statuses(keys).slice(0, 3)).toEqual(['verified', 'rejected', 'rejected']);
  });

  test('a missing old private key blocks only what needs it', () => {
    const memberPrivateKey = (key: string) => (key === newKey ? newPrivateKey : undefined);
    expect(statuses(full(), reader({ memberPrivateKey }))).toEqual([
      'missing_private_key',
      'missing_private_key',
      'missing_private_key',
      'verified',
      'verified',
      'verified',
    ]);
  });

  test('boxes of another context or another secret are rejected, the rest goes on', () => {
    const keys = full();
    keys[0] = entry(1, clientBox(bob.memberKey, nextSecret, commitment));
    keys[3] = { ...entry(4, clientBox(newKey)), relay_secret_box: relayBox(4, 5) };
    expect(statuses(keys)).toEqual([
      'rejected',
      'rejected',
      'rejected',
      'rejected',
      'verified',
      'verified',
    ]);
    const foreign = reader({ devicePrivateKey: alice.devicePrivateKey });
    expect(statuses(full(), foreign)).toEqual(Array(6).fill('rejected'));
  });

  test('an epoch the verified chain does not have yet waits, and carries nothing on', () => {
    const history = historyOf(bob.account).slice(0, 3);
    expect(statuses(full(), reader({ history }))).toEqual([
      'verified',
      'verified',
      'verified',
      'verified',
      'unknown_epoch',
      'unknown_epoch',
    ]);
    const gap = historyOf(bob.account).map((period) => ({
      ...period,
      epochs: period.epochs.filter((epoch) => epoch !== 2),
    }));
    expect(statuses(full(), reader({ history: gap })).slice(0, 3)).toEqual([
      'verified',
      'unknown_epoch',
      'missing_box',
    ]);
    const early = reader({ history: historyOf(bob.account).slice(1, 2) });
    const keys = [entry(0, clientBox(bob.memberKey)), entry(1)];
    expect(statuses(keys, early)).toEqual(['unknown_epoch', 'missing_box']);
  });

  test('an epoch in which the account was no member is rejected', () => {
    expect(statuses([entry(0, clientBox(bob.memberKey))])).toEqual(['rejected']);
  });

  test('structure: order, limit, boxes, the first box, the end', () => {
    const check = (keys: unknown, request = {}, has_more = false) =>
      codeOf(() => checkGroupKeyPage({ keys, has_more }, request));
    const [first, second] = full() as [GroupKeyEntry, GroupKeyEntry];
    expect(check([second])).toBe('bad_request');
    expect(check([first, first])).toBe('bad_request');
    expect(check([first, second], { after: 1 })).toBe('bad_request');
    expect(check([first, second], { limit: 1 })).toBe('bad_request');
    expect(check([], {}, true)).toBe('bad_request');
    expect(check([{ ...first, client_secret_box: null }])).toBe('bad_request');
    expect(check([{ ...first, relay_secret_box: undefined }])).toBe('bad_request');
    expect(check([{ ...first, $context: 'x' }])).toBe('bad_request');
    const bound = { ...first.relay_secret_box, $context: 'x' };
    expect(check([{ ...first, relay_secret_box: bound }])).toBe('bad_request');
    expect(() => checkGroupKeyPage({ keys: [], has_more: false }, {})).not.toThrow();
    expect(() => checkGroupKeyPage({ keys: [first, second], has_more: true }, {})).not.toThrow();
  });
});
