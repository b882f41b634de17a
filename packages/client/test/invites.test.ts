/** Invites as links, and as the documents of chapter 03 that other clients understand (03 §14). */
import { expect, test } from 'vitest';
import { relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients();

test('03 §14: an invite is given out as a plain document, and taken in as one', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  const { invite: document } = await ann.contacts.invite();
  expect(document).toEqual({
    $type: 'svc.contact.invite',
    inviter: ann.id,
    signer_device_id: ann.deviceId,
    expires_at: expect.any(Number),
    device_signature: expect.any(String),
  });
  expect(bob.contacts.preview(document)).toEqual(document);
  expect(bob.contacts.preview(JSON.stringify(document))).toEqual(document);
  // Written by another client: members in another order, with spaces.
  const other = JSON.stringify(Object.fromEntries(Object.entries(document).reverse()), null, 2);
  await bob.contacts.join(`\n${other}\n`);
  await ann.sync();
  await ann.contacts.approve(bob.id);
  await bob.sync();
  expect(await bob.contacts.get(ann.id)).toMatchObject({ status: 'active' });
});

test('03 §14: link and document are the same invite', async () => {
  const ann = await world.person();
  const bob = await world.person();
  const { text, invite } = await ann.contacts.invite({ lifetime: 60 });
  expect(bob.contacts.preview(text)).toEqual(invite);
});

test('03 §14: a document that is malformed, expired, changed or one’s own is refused', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  const { invite } = await ann.contacts.invite({ lifetime: 3_600 });
  const text = JSON.stringify(invite);
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
    expect(() => bob.contacts.preview(each), each).toThrow(
      expect.objectContaining({ code: 'verification_failed' }),
    );
  }
  expect(() => bob.contacts.preview({ ...invite, expires_at: 1 })).toThrow(
    expect.objectContaining({ code: 'verification_failed' }),
  );
  expect(() => ann.contacts.preview(text)).toThrow(
    expect.objectContaining({ code: 'verification_failed' }),
  );
  // Signature and signer are judged by the relay and the inviter's device state.
  const longer = text.replace(/"expires_at":(\d+)/, (_, at) => `"expires_at":${Number(at) + 1}`);
  await expect(bob.contacts.join(longer)).rejects.toMatchObject({ code: 'relay_refused' });
  expect(await bob.contacts.get(ann.id)).toMatchObject({ status: 'none' });
});
