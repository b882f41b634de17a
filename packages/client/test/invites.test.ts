/** Invites as links, and as the documents of chapter 03 that other clients understand (03 §14). */
import { parseJson } from '@posthouse/protocol/json';
import { expect, test } from 'vitest';
import { relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients();

test('03 §14: an invite is given out as a plain document, and taken in as one', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  const text = await ann.contacts.invite({ format: 'document' });
  const document = parseJson(text);
  expect(document).toEqual({
    $type: 'svc.contact.invite',
    inviter: ann.id,
    signer_device_id: ann.deviceId,
    expires_at: expect.any(Number),
    device_signature: expect.any(String),
  });
  expect(bob.contacts.read(text)).toEqual(document);
  // Written by another client: members in another order, with spaces.
  const other = JSON.stringify(
    Object.fromEntries(Object.entries(document as object).reverse()),
    null,
    2,
  );
  await bob.contacts.acceptInvite(`\n${other}\n`);
  await ann.sync();
  await ann.contacts.approve(bob.id);
  await bob.sync();
  expect(await bob.contacts.get(ann.id)).toMatchObject({ status: 'active' });
});

test('03 §14: link and document are the same invite', async () => {
  const ann = await world.person();
  const bob = await world.person();
  const [link, document] = [
    await ann.contacts.invite({ lifetime: 60 }),
    await ann.contacts.invite({ lifetime: 60, format: 'document' }),
  ];
  const [a, b] = [bob.contacts.read(link), bob.contacts.read(document)];
  expect({ ...b, expires_at: 0, device_signature: '' }).toEqual({
    ...a,
    expires_at: 0,
    device_signature: '',
  });
});

test('03 §14: a document that is malformed, expired, changed or one’s own is refused', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  const text = await ann.contacts.invite({ format: 'document', lifetime: 3_600 });
  const refused = [
    '{',
    '[]',
    '{}',
    text.replace('svc.contact.invite', 'svc.contact.invites'),
    text.replace('{', '{"expires_at":1,'),
    text.replace(/"expires_at":\d+/, '"expires_at":1'),
    text.replace(/"device_signature":"/, '"device_signature":"A'),
  ];
  for (const each of refused) {
    expect(() => bob.contacts.read(each), each).toThrow(
      expect.objectContaining({ code: 'verification_failed' }),
    );
  }
  expect(() => ann.contacts.read(text)).toThrow(
    expect.objectContaining({ code: 'verification_failed' }),
  );
  // Signature and signer are judged by the relay and the inviter's device state.
  const longer = text.replace(/"expires_at":(\d+)/, (_, at) => `"expires_at":${Number(at) + 1}`);
  await expect(bob.contacts.acceptInvite(longer)).rejects.toMatchObject({ code: 'relay_refused' });
  expect(await bob.contacts.get(ann.id)).toMatchObject({ status: 'none' });
});
