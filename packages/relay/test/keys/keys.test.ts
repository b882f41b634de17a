import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  accountSigner,
  decodeBase64url,
  deriveRelayId,
  ed25519KeyOfPeer,
  parsePeerId,
  utf8,
} from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { relayIdentity } from '../../src/keys/identity.ts';
import { createKeys, loadKeys } from '../../src/keys/keys.ts';
import { temporaryFolder } from '../support/folder.ts';
import { network } from '../support/in-process-relay.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

test('keys are made once and never again', async () => {
  expect(await createKeys(folder.path, nodeRandom)).toBe(true);
  const first = await loadKeys(folder.path);
  expect(await createKeys(folder.path, nodeRandom)).toBe(false);
  expect(await loadKeys(folder.path)).toEqual(first);
  expect(first.relay).toHaveLength(32);
  expect(first.peer).not.toEqual(first.relay);
});

test('only the owner may read them', async () => {
  await createKeys(folder.path, nodeRandom);
  expect(statSync(join(folder.path, 'keys')).mode & 0o777).toBe(0o700);
  for (const file of ['relay.key', 'peer.key']) {
    expect(statSync(join(folder.path, 'keys', file)).mode & 0o777).toBe(0o600);
  }
});

test.each([0o640, 0o604, 0o644, 0o660])('a key of mode %o is refused', async (mode) => {
  await createKeys(folder.path, nodeRandom);
  const path = join(folder.path, 'keys', 'relay.key');
  chmodSync(path, mode);
  await expect(loadKeys(folder.path)).rejects.toThrow(
    `${path}: expected mode 0600, found 0${mode.toString(8)}; others may have read the key`,
  );
});

test('missing and malformed keys are named', async () => {
  await expect(loadKeys(folder.path)).rejects.toThrow(/relay\.key: .*`posthouse init` first/);
  await createKeys(folder.path, nodeRandom);
  writeFileSync(join(folder.path, 'keys', 'peer.key'), 'short\n');
  await expect(loadKeys(folder.path)).rejects.toThrow(/peer\.key: expected 32 bytes in base64url/);
});

test('01 §12: the identity follows from the keys', async () => {
  await createKeys(folder.path, nodeRandom);
  const keys = await loadKeys(folder.path);
  const identity = relayIdentity(network, keys);
  const { publicKey } = accountSigner(network, keys.relay);
  expect(identity).toMatchObject({ publicKey, relayId: deriveRelayId(network, publicKey) });
  const peer = parsePeerId(identity.peerId) as Uint8Array;
  expect(ed25519KeyOfPeer(peer)).toEqual(
    new Uint8Array(network.primitives.ed25519.publicKey(keys.peer)),
  );
  const message = utf8('message');
  const signature = decodeBase64url(identity.sign(message)) as Uint8Array;
  const key = decodeBase64url(publicKey) as Uint8Array;
  expect(network.primitives.p256.verify(key, message, signature)).toBe(true);
});

test('no private key stands in anything that is shown', async () => {
  await createKeys(folder.path, nodeRandom);
  const identity = relayIdentity(network, await loadKeys(folder.path));
  const key = readFileSync(join(folder.path, 'keys', 'relay.key'), 'utf8').trim();
  expect(JSON.stringify(identity)).not.toContain(key);
});
