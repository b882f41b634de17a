import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import {
  type ClientBoxContext,
  clientBoxInput,
  findMemberPrivateKey,
  type RelayBoxContext,
} from '../../src/groups/boxes.ts';
import {
  checkGroupSecretBox,
  clientSecretCommitment,
  decodeBase64url,
  encodeBase64url,
  Network,
  openClientSecret,
  openRelaySecret,
  sealClientSecret,
  sealRelaySecret,
} from '../../src/index.ts';
import { unwrapKey, wrapKey } from '../../src/messages/key-wrap.ts';
import {
  alice,
  bob,
  clientSecret,
  codeOf,
  commitment,
  counting,
  fill,
  groupId,
  network,
  context as networkContext,
} from './fixture.ts';

const clientContext: ClientBoxContext = {
  group_id: groupId,
  account: bob.account,
  member_encryption_public_key: bob.memberKey,
  client_secret_commitment: commitment,
};
const relayContext: RelayBoxContext = {
  group_id: groupId,
  account: bob.account,
  device_id: bob.deviceId,
  epoch: 7,
};
const deviceKey = bob.certificate.encryption_public_key;
const random = counting();
const clientBox = sealClientSecret(network, clientContext, { secret: clientSecret, random });
const relaySecret = fill(88, 32);
const relayBox = sealRelaySecret(network, relayContext, { deviceKey, secret: relaySecret, random });
const otherNetwork = new Network({
  context: networkContext.replace('0x00', '0x01'),
  primitives: noblePrimitives,
});

const openClient = (context: ClientBoxContext, box = clientBox, on = network) =>
  openClientSecret(on, context, { box, privateKey: bob.memberPrivateKey });
const openRelay = (context: RelayBoxContext, box = relayBox, on = network) =>
  openRelaySecret(on, context, { box, privateKey: bob.devicePrivateKey });

describe('05 §3.6: client secret boxes', () => {
  test('the member opens its box and gets the secret', () => {
    expect(openClient(clientContext)).toEqual(clientSecret);
  });

  test('the box opens in no context but its own', () => {
    const group_id = `grp_${encodeBase64url(fill(1, 16))}`;
    const other = clientSecretCommitment(network, groupId, fill(1, 32));
    expect(openClient({ ...clientContext, group_id })).toBeUndefined();
    expect(openClient({ ...clientContext, account: alice.account })).toBeUndefined();
    expect(openClient({ ...clientContext, client_secret_commitment: other })).toBeUndefined();
    expect(openClient(clientContext, clientBox, otherNetwork)).toBeUndefined();
  });

  test('a private key that is not the context’s is refused before the box is tried', () => {
    const privateKey = alice.memberPrivateKey;
    expect(
      openClientSecret(network, clientContext, { box: clientBox, privateKey }),
    ).toBeUndefined();
    const named = { ...clientContext, member_encryption_public_key: alice.memberKey };
    expect(openClientSecret(network, named, { box: clientBox, privateKey })).toBeUndefined();
  });

  test('a box opens only with the key that its context names', () => {
    const named = { ...clientContext, member_encryption_public_key: alice.memberKey };
    const info = clientBoxInput(network, named);
    const { enc, sealed } = wrapKey(network, {
      publicKey: bob.memberKey,
      info: () => info,
      key: clientSecret,
      random,
    });
    const box = { ...clientBox, enc, sealed_secret: sealed };
    const unwrapped = { privateKey: bob.memberPrivateKey, enc, sealed, info };
    expect(unwrapKey(network, unwrapped)).toEqual(clientSecret);
    expect(openClient(named, box)).toBeUndefined();
  });

  test('a box that authenticates but holds another secret than the committed one is rejected', () => {
    const secret = fill(78, 32);
    const box = sealClientSecret(network, clientContext, { secret, random });
    expect(openClient(clientContext, box)).toBeUndefined();
  });

  test('the epoch is no part of the context: one box serves many epochs', () => {
    const text = new TextDecoder().decode(clientBoxInput(network, clientContext));
    expect(JSON.parse(text)).toEqual({
      $context: networkContext,
      $type: network.type('group.client_secret_box.aad'),
      ...clientContext,
    });
  });

  test('every box has its own ephemeral key and nonce', () => {
    const again = sealClientSecret(network, clientContext, { secret: clientSecret, random });
    expect(again.enc).not.toBe(clientBox.enc);
    expect(again.sealed_secret.slice(0, 16)).not.toBe(clientBox.sealed_secret.slice(0, 16));
    expect(openClient(clientContext, again)).toEqual(clientSecret);
  });
});

describe('05 §3.7: relay secret boxes', () => {
  test('the device opens its box and gets the secret', () => {
    expect(openRelay(relayContext)).toEqual(relaySecret);
  });

  test('the box opens in no context but its own', () => {
    expect(openRelay({ ...relayContext, epoch: 8 })).toBeUndefined();
    expect(openRelay({ ...relayContext, device_id: alice.deviceId })).toBeUndefined();
    expect(openRelay({ ...relayContext, account: alice.account })).toBeUndefined();
    const group_id = `grp_${encodeBase64url(fill(1, 16))}`;
    expect(openRelay({ ...relayContext, group_id })).toBeUndefined();
    expect(openRelay(relayContext, relayBox, otherNetwork)).toBeUndefined();
  });
});

test('05 §3.6, §3.7: a box opens only if every part of its context is the same', () => {
  const groups = [groupId, `grp_${encodeBase64url(fill(1, 16))}`];
  const where = fc.record({
    group_id: fc.constantFrom(...groups),
    account: fc.constantFrom(alice.account, bob.account),
    device_id: fc.constantFrom(alice.deviceId, bob.deviceId),
    epoch: fc.constantFrom(0, 1, Number.MAX_SAFE_INTEGER),
    client_secret_commitment: fc.constantFrom(
      ...groups.map((group) => clientSecretCommitment(network, group, clientSecret)),
    ),
  });
  fc.assert(
    fc.property(where, where, (sealed, opened) => {
      const relay = sealRelaySecret(network, sealed, { deviceKey, secret: relaySecret, random });
      const names = ['group_id', 'account', 'device_id', 'epoch'] as const;
      const sameRelay = names.every((name) => sealed[name] === opened[name]);
      expect(openRelay(opened, relay) !== undefined).toBe(sameRelay);

      const key = { member_encryption_public_key: bob.memberKey };
      const client = sealClientSecret(
        network,
        { ...sealed, ...key },
        { secret: clientSecret, random },
      );
      const parts = ['group_id', 'account', 'client_secret_commitment'] as const;
      const committed = clientSecretCommitment(network, opened.group_id, clientSecret);
      const sameClient =
        parts.every((name) => sealed[name] === opened[name]) &&
        opened.client_secret_commitment === committed;
      expect(openClient({ ...opened, ...key }, client) !== undefined).toBe(sameClient);
    }),
    { numRuns: 60 },
  );
});

describe('05 §3.5: both kinds', () => {
  test('a box of one kind never opens as the other, even for one key', () => {
    const key = bob.memberKey;
    const asRelay = sealRelaySecret(network, relayContext, {
      deviceKey: key,
      secret: clientSecret,
      random,
    });
    expect(openClient(clientContext, asRelay)).toBeUndefined();
    const privateKey = bob.memberPrivateKey;
    expect(openRelaySecret(network, relayContext, { box: clientBox, privateKey })).toBeUndefined();
    expect(openRelaySecret(network, relayContext, { box: asRelay, privateKey })).toEqual(
      clientSecret,
    );
  });

  test('01 E2: sealing to a key whose shared secret is zero is refused', () => {
    for (const first of [0, 1]) {
      const low = fill(0, 32);
      low[0] = first;
      const member_encryption_public_key = encodeBase64url(low);
      const context = { ...clientContext, member_encryption_public_key };
      const seal = () => sealClientSecret(network, context, { secret: clientSecret, random });
      expect(codeOf(seal)).toBe('bad_request');
      const box = { ...relayBox, enc: encodeBase64url(low) };
      expect(openRelay(relayContext, box)).toBeUndefined();
    }
  });

  test('any changed bit of a box makes it unusable', () => {
    const part = fc.constantFrom('enc' as const, 'sealed_secret' as const);
    const place = fc.record({ part, byte: fc.nat(59), bit: fc.nat(7) });
    fc.assert(
      fc.property(place, ({ part: name, byte, bit }) => {
        const bytes = decodeBase64url(relayBox[name]) as Uint8Array;
        const at = byte % bytes.length;
        // The top bit of an X25519 key is ignored by the function itself.
        if (name === 'enc' && at === 31 && bit === 7) return;
        bytes[at] = (bytes[at] as number) ^ (1 << bit);
        const box = { ...relayBox, [name]: encodeBase64url(bytes) };
        expect(openRelay(relayContext, box)).toBeUndefined();
      }),
      { numRuns: 60 },
    );
  });

  test('structure: algorithm, lengths, encoding', () => {
    expect(() => checkGroupSecretBox(clientBox)).not.toThrow();
    const wrong: unknown[] = [
      null,
      'box',
      { ...clientBox, alg: 'X25519-HKDF-SHA256-AES256CBC' },
      { ...clientBox, enc: encodeBase64url(fill(1, 31)) },
      { ...clientBox, enc: encodeBase64url(fill(1, 33)) },
      { ...clientBox, sealed_secret: encodeBase64url(fill(1, 59)) },
      { ...clientBox, sealed_secret: encodeBase64url(fill(1, 61)) },
      { ...clientBox, sealed_secret: `${clientBox.sealed_secret.slice(0, 79)}+` },
      { ...clientBox, $context: networkContext },
      { alg: clientBox.alg, enc: clientBox.enc },
    ];
    for (const box of wrong) expect(codeOf(() => checkGroupSecretBox(box))).toBe('bad_request');
  });
});

test('05 §16: the private key is chosen by its public key, not by its place', () => {
  const keys = [alice, bob].map((each) => encodeBase64url(each.memberPrivateKey));
  const candidates = ['not a key', encodeBase64url(fill(1, 31)), ...keys];
  expect(findMemberPrivateKey(network, bob.memberKey, candidates)).toEqual(bob.memberPrivateKey);
  expect(findMemberPrivateKey(network, bob.memberKey, candidates.toReversed())).toEqual(
    bob.memberPrivateKey,
  );
  expect(findMemberPrivateKey(network, bob.memberKey, candidates.slice(0, 3))).toBeUndefined();
});
