/** Vectors of chapter 03, sections 14 and 16: invites and grants. */
import { deriveDeviceId, signingDevice } from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import {
  ann,
  ben,
  certificateOf,
  network,
  otherRegistry,
  signedBy,
  start,
  type TestDevice,
  tampered,
  VectorFile,
  without,
} from './fixture.ts';

const first = certificateOf(ann, ann.device);
/** Valid for a day only. */
const second = certificateOf(ann, ann.second, { expires_at: start + 86_400 });
const state = signedBy(
  ann.signer,
  {
    $type: network.type('account.device.state'),
    account: ann.signer.account,
    account_public_key: ann.signer.publicKey,
    revision: 1,
    certificates: [first, second],
  },
  'account_signature',
);
const benState = signedBy(
  ben.signer,
  {
    $type: network.type('account.device.state'),
    account: ben.signer.account,
    account_public_key: ben.signer.publicKey,
    revision: 1,
    certificates: [certificateOf(ben, ben.device)],
  },
  'account_signature',
);
const now = start + 100;
const forbidden = { error: 'forbidden' };

export function grantVectors(): VectorFile {
  const file = new VectorFile('Contact grants', '03 §16');
  const operation = 'grant.verify';
  const make = (devices: readonly TestDevice[], changes: JsonObject = {}) => {
    const body = {
      $type: network.type('contact.grant'),
      grantor: ann.signer.account,
      grantee: ben.signer.account,
      expires_at: start + 1_000,
      ...changes,
    };
    const signatures = Object.fromEntries(
      devices.map((device) => [
        signingDevice(network, ann.signer.account, device).deviceId,
        signedBy(device, body, 'signature').signature,
      ]),
    );
    return { ...body, signatures };
  };
  const input = (grant: JsonObject, more: JsonObject = {}) => ({ grant, state, now, ...more });
  const grant = make([ann.device]);
  file.valid('signed by one device', operation, input(grant));
  file.valid('signed by two devices', operation, input(make([ann.device, ann.second])));
  file.valid(
    'the right accounts',
    operation,
    input(grant, {
      grantor: ann.signer.account,
      grantee: ben.signer.account,
    }),
  );
  file.valid('U1: unknown members are signed', operation, input(make([ann.device], { zz: [1] })));
  const { expires_at: _end, ...endless } = grant;
  const forever = signedBy(ann.device, without(endless, 'signatures'), 'signature').signature;
  const id = deriveDeviceId(network, first);
  file.valid('without an end', operation, input({ ...endless, signatures: { [id]: forever } }));
  file.valid('the last second', operation, input(grant, { now: start + 999 }));
  const secondId = deriveDeviceId(network, second);
  const strangers = { ...make([ann.device, ben.device]).signatures, [secondId]: 'A'.repeat(86) };
  const mixed = { ...grant, signatures: strangers };
  file.valid('16.3: one good signature among others is enough', operation, input(mixed));
  const both = make([ann.device, ann.second]);
  const later = { now: start + 86_400 };
  const long = make([ann.device, ann.second], { expires_at: start + 200_000 });
  file.valid(
    '16.3: the signature of an expired device counts no more',
    operation,
    input(long, later),
  );
  const bad = (name: string, changed: JsonObject, more: JsonObject = {}) =>
    file.invalid(name, operation, input(changed, more));
  const refuse = (name: string, changed: JsonObject, more: JsonObject = {}) =>
    file.invalid(name, operation, input(changed, more), forbidden);
  refuse('expired', grant, { now: start + 1_000 });
  refuse('of another grantor', grant, { grantor: ben.signer.account });
  refuse('for another grantee', grant, { grantee: ann.signer.account });
  refuse("against another account's devices", grant, { state: benState });
  refuse(
    'signed by an expired device alone',
    make([ann.second], { expires_at: start + 200_000 }),
    later,
  );
  refuse('tampered', { ...grant, signatures: { [id]: tampered(String(grant.signatures[id])) } });
  refuse('body changed after signing', { ...both, expires_at: start + 2_000 });
  refuse('unknown member added after signing', { ...grant, zz: 1 });
  refuse("under another device's ID", {
    ...grant,
    signatures: { [secondId]: String(grant.signatures[id]) },
  });
  file.invalid('N4: on another registry', operation, input(grant), {
    ...{ on: otherRegistry, error: 'invalid_signature' },
  });
  bad('no signature', { ...grant, signatures: {} });
  bad('signatures missing', without(grant, 'signatures'));
  bad('a device ID with pad bits', { ...grant, signatures: { [`${id.slice(0, -1)}B`]: forever } });
  bad('a key that is no device ID', { ...grant, signatures: { ...grant.signatures, x: forever } });
  bad('a signature of 63 bytes', { ...grant, signatures: { [id]: forever.slice(2) } });
  bad('a null signature', { ...grant, signatures: { [id]: null } });
  bad('to oneself', make([ann.device], { grantee: ann.signer.account }));
  bad('expires_at null', { ...grant, expires_at: null });
  bad('expires_at a text', { ...grant, expires_at: '1' });
  bad('K2: $context on the wire', { ...grant, $context: network.context });
  bad('Y1: another type', { ...grant, $type: network.type('contact.invite') });
  bad('grantee missing', without(grant, 'grantee'));
  return file;
}

export function inviteVectors(): VectorFile {
  const file = new VectorFile('Contact invites', '03 §14');
  const operation = 'invite.verify';
  const make = (device: TestDevice, changes: JsonObject = {}) =>
    signedBy(
      device,
      {
        $type: network.type('contact.invite'),
        inviter: ann.signer.account,
        signer_device_id: signingDevice(network, ann.signer.account, device).deviceId,
        expires_at: start + 1_000,
        ...changes,
      },
      'device_signature',
    );
  const input = (invite: JsonObject, more: JsonObject = {}) => ({ invite, state, now, ...more });
  const invite = make(ann.device);
  file.valid('genuine', operation, input(invite));
  file.valid('by the second device', operation, input(make(ann.second)));
  file.valid('the last second', operation, input(invite, { now: start + 999 }));
  file.valid('U1: unknown members', operation, input(make(ann.device, { zz: {} })));
  const refuse = (name: string, changed: JsonObject, more: JsonObject = {}, error = 'forbidden') =>
    file.invalid(name, operation, input(changed, more), { error });
  refuse('expired', invite, { now: start + 1_000 });
  refuse('of another inviter', invite, { inviter: ben.signer.account });
  refuse("against another account's devices", invite, { state: benState });
  const long = { expires_at: start + 200_000 };
  refuse('by an expired device', make(ann.second, long), { now: start + 86_400 });
  refuse('by a stranger', make(ben.device));
  const spoiled = { ...invite, device_signature: tampered(invite.device_signature) };
  refuse('tampered', spoiled, {}, 'invalid_signature');
  refuse(
    'changed after signing',
    { ...invite, expires_at: start + 2_000 },
    {},
    'invalid_signature',
  );
  const on = { on: otherRegistry, error: 'invalid_signature' };
  file.invalid('N4: on another registry', operation, input(invite), on);
  const bad = (name: string, changed: JsonObject) => file.invalid(name, operation, input(changed));
  bad('K2: $context on the wire', { ...invite, $context: network.context });
  bad('Y1: another type', { ...invite, $type: network.type('contact.grant') });
  bad('expires_at missing', without(invite, 'expires_at'));
  bad('expires_at null', { ...invite, expires_at: null });
  bad('inviter with a wrong checksum', {
    ...invite,
    inviter: `${invite.inviter.slice(0, -1)}q`,
  });
  bad('a device ID with pad bits', {
    ...invite,
    signer_device_id: `${invite.signer_device_id.slice(0, -1)}B`,
  });
  return file;
}
