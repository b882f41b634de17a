import { describe, expect, test } from 'vitest';
import {
  advanceGroup,
  checkGroupSyncPage,
  clientSecretCommitment,
  type DeviceAccess,
  type DeviceCertificate,
  decideGroupEvent,
  deriveAccountId,
  deriveDeviceId,
  deviceSignatures,
  deviceSigningInput,
  encodeBase64url,
  type GroupEvent,
  type GroupProjection,
  hex,
  managementHash,
  mayReadMessage,
  type Network,
  utf8,
  verifyDeviceCertificate,
  verifyGroupApplication,
  verifyGroupEvent,
  verifyGroupMemberRecoveryRequest,
  verifyGroupSyncPage,
} from '../../src/index.ts';
import { canonicalWith, type JsonObject } from '../../src/json/index.ts';
import { bytesOf, Chain, codeOf, copy, plain } from './groups-v1-chain-state.ts';
import { rejections } from './groups-v1-rejections.ts';
import type { ManagementChain, Step } from './groups-v1-shape.ts';

/** Inputs, digest and state of one step, and the state after it. */
export function checkStep(chain: Chain, before: GroupProjection | undefined, step: Step) {
  const { network } = chain;
  const { event, expected_projection, management_hash } = step;
  const after = chain.apply(before, event);
  expect(plain(after)).toEqual(expected_projection);
  expect({ sequence: after.sequence, epoch: after.epoch }).toEqual({
    sequence: event.sequence,
    epoch: event.epoch,
  });
  const added = { $context: network.context };
  if (management_hash === undefined) {
    const head = step.management_head_hash_before_and_after;
    expect([before?.head, after.head]).toEqual([head, head]);
  } else {
    expect(managementHash(network, event.payload)).toBe(management_hash);
    expect(after.head).toBe(management_hash);
  }
  if (step.signing_input_utf8_hex !== undefined) {
    const input = deviceSigningInput(network, event.payload);
    expect(hex(input)).toBe(step.signing_input_utf8_hex);
  }
  if (step.hash_input_canonical_json !== undefined) {
    const text = canonicalWith(event.payload, { add: added });
    expect(text).toBe(step.hash_input_canonical_json);
    expect(hex(utf8(text))).toBe(step.hash_input_utf8_hex);
  }
  return after;
}

export function chainVectors(network: Network, data: ManagementChain): void {
  const chain = new Chain(network, data);
  const account = (label: string) => chain.player(label).account;

  describe('actors', () => {
    test.each([...data.actors])('$label: keys, certificate and device ID', (actor) => {
      const { p256, ed25519 } = network.primitives;
      const { certificate } = actor;
      verifyDeviceCertificate(network, certificate);
      const publicKey = encodeBase64url(p256.publicKey(bytesOf(actor.account_private_key)));
      expect(certificate.account_public_key).toBe(publicKey);
      expect(certificate.account).toBe(deriveAccountId(network, publicKey));
      const signing = ed25519.publicKey(bytesOf(actor.signing_private_key));
      expect(certificate.signing_public_key).toBe(encodeBase64url(signing));
      expect(deriveDeviceId(network, certificate)).toBe(actor.device_id);
    });

    test.each([...data.member_requests])('request $label', (item) => {
      const { certificate } = chain.player(item.actor);
      expect(hex(deviceSigningInput(network, item.request))).toBe(item.signing_input_utf8_hex);
      const application = network.type('group.application') === item.request.$type;
      if (application) verifyGroupApplication(network, item.request, certificate);
      else verifyGroupMemberRecoveryRequest(network, item.request, certificate);
      expect(item.request.member_encryption_public_key).toMatch(/^[\w-]{43}$/);
    });
  });

  describe('chain', () => {
    test.each(data.chain.map((step, index) => ({ step, index, type: step.event.payload.$type })))(
      '$index: $type',
      ({ step, index }) => {
        checkStep(chain, index === 0 ? undefined : chain.after(index - 1), step);
      },
    );

    test('the first member keys are those of the actors and of their requests', () => {
      expect(chain.after(0).members.get(account('A'))?.member_encryption_public_key).toBe(
        chain.player('A').key,
      );
      const [application, recovery, again] = data.member_requests.map(({ request }) => request);
      const keyOf = (index: number, label: string) =>
        chain.after(index).members.get(account(label))?.member_encryption_public_key;
      expect(keyOf(1, 'B')).toBe(application?.member_encryption_public_key);
      expect(keyOf(3, 'C')).toBe(chain.player('C').key);
      expect(chain.player('B').key).toBe(keyOf(1, 'B'));
      expect(keyOf(4, 'C')).toBe(recovery?.member_encryption_public_key);
      expect(keyOf(8, 'B')).toBe(again?.member_encryption_public_key);
    });

    test('commitments are those of the two client secrets', () => {
      const commitment = (secret: string) =>
        clientSecretCommitment(network, data.group_id, bytesOf(secret));
      expect(chain.after(4).client_secret_commitment).toBe(
        commitment(data.initial_client_group_secret),
      );
      expect(chain.after(5).client_secret_commitment).toBe(
        commitment(data.rotated_client_group_secret),
      );
      const creation = data.chain[0]?.event.payload as JsonObject | undefined;
      expect(creation?.nonce).toBe(data.nonce);
    });

    test('a rotation of the relay advances the epoch and keeps the head', () => {
      const { event, management_head_hash_before_and_after: head } = data.automatic_rotation;
      const before = chain.after(4);
      const after = chain.apply(before, event);
      expect([before.head, after.head]).toEqual([head, head]);
      expect(after.epoch).toBe(event.epoch);
      expect(after.sequence).toBe(event.sequence);
      const { sequence, epoch, ...rest } = after;
      const { sequence: _, epoch: __, ...same } = before;
      expect(rest).toEqual(same);
      expect(event.accepted_at).toBeGreaterThan(0);
    });

    test('the synchronisation page leads to the same state, whole or in two halves', () => {
      const page = verifyGroupSyncPage(network, data.sync_response, {});
      const whole = advanceGroup(network, chain.anchor, page);
      expect(whole.blocked).toBeUndefined();
      expect(whole.outcomes.map((outcome) => outcome.kind)).not.toContain('rejected');
      expect(plain(whole.group as GroupProjection)).toEqual(plain(chain.after(15)));
      expect(page.has_more).toBe(false);
      const first = advanceGroup(network, chain.anchor, {
        ...page,
        events: page.events.slice(0, 7),
      });
      const second = advanceGroup(network, first.group as GroupProjection, {
        ...page,
        events: page.events.slice(7),
      });
      expect(second.group).toEqual(whole.group);
    });

    test('outer members are not hashed', () => {
      const { original, changed_metadata, expected_hash } = data.hash_metadata_exclusion;
      expect(managementHash(network, original.payload)).toBe(expected_hash);
      expect(managementHash(network, changed_metadata.payload)).toBe(expected_hash);
      const { payload: _, ...outer } = original;
      const { payload: __, ...changed } = changed_metadata;
      for (const name of Object.keys(outer) as (keyof typeof outer)[]) {
        expect(changed[name]).not.toEqual(outer[name]);
      }
    });
  });

  describe('rejection cases', () => {
    test.each([...data.rejection_cases])('$name: $mutation', ({ name }) => {
      const rejection = rejections[name];
      if (rejection === undefined) throw new Error('no such mutation is known');
      const { code, run } = rejection;
      const codes = [run(chain)].flat();
      expect(codes).toEqual(codes.map(() => code));
    });

    test('every mutation known here is one of the file', () => {
      const names = data.rejection_cases.map(({ name }) => name);
      expect(Object.keys(rejections).sort()).toEqual([...names].sort());
    });
  });

  describe('certificates of a page', () => {
    test.each([...data.sync_certificate_cases])('$name', (item) => {
      const broken = item.invalidate_device_signature_of;
      const certificates = item.certificate_actors.map((label): DeviceCertificate => {
        const { certificate } = chain.player(label);
        if (label !== broken) return certificate;
        return { ...certificate, device_signature: encodeBase64url(new Uint8Array(64)) };
      });
      const events = item.empty_page === true ? [] : data.sync_response.events;
      const page = { events, certificates, has_more: false };
      const verify = () => verifyGroupSyncPage(network, page, {});
      if (item.expected_certificate_set_valid) {
        expect(verify().signers.size).toBe(certificates.length);
      } else {
        expect(codeOf(verify)).toBe(broken === undefined ? 'bad_request' : 'invalid_signature');
      }
    });
  });

  describe('signer and account', () => {
    test.each([...data.signer_account_binding.cases])('$name', (item) => {
      const { event_index, expected_management_hash } = data.signer_account_binding;
      verifyDeviceCertificate(network, item.certificate);
      expect(deriveDeviceId(network, item.certificate)).toBe(item.signer_device_id);
      const original = data.chain[event_index]?.event as GroupEvent;
      const event = { ...copy(original), signer_device_id: item.signer_device_id };
      const signers = new Map([[item.signer_device_id, item.certificate]]);
      // The signature verifies in both cases; whether it counts is another question.
      expect(item.expected_signature_valid).toBe(true);
      expect(() => verifyGroupEvent(network, event, signers)).not.toThrow();
      const before = chain.after(event_index - 1);
      if (item.expected_accepted) {
        const after = chain.apply(before, event, signers);
        expect(after.head).toBe(expected_management_hash);
        expect(plain(after)).toEqual(plain(chain.after(event_index)));
      } else {
        expect(codeOf(() => chain.apply(before, event, signers))).toBe('forbidden');
      }
    });

    const binding = data.member_request_account_binding;
    const certificateOf = (source: string) =>
      source === 'actor_A'
        ? chain.player('A').certificate
        : (data.signer_account_binding.cases.find((each) => each.name === source)
            ?.certificate as DeviceCertificate);
    const pairs = binding.requests.flatMap((request) =>
      binding.cases.map((item) => ({ title: `${request.name}, ${item.name}`, request, item })),
    );

    test.each(pairs)('$title', ({ request: { request, signing_input_utf8_hex }, item }) => {
      expect(hex(deviceSigningInput(network, request))).toBe(signing_input_utf8_hex);
      const certificate = certificateOf(item.certificate_source);
      const object = { ...copy(request), account: item.request_account ?? request.account };
      const valid = deviceSignatures(network, object, certificate).every((check) =>
        network.primitives[check.scheme].verify(check.publicKey, check.message, check.signature),
      );
      expect(valid).toBe(item.expected_signature_valid);
      const { session_account } = item;
      const bound = new Set([object.account, certificate.account, session_account]).size === 1;
      expect(bound).toBe(item.expected_account_binding_valid);
      // The check for receivers combines both; the session's account is the relay's to compare.
      const verify =
        object.$type === network.type('group.application')
          ? verifyGroupApplication
          : verifyGroupMemberRecoveryRequest;
      const check = () => verify(network, object, certificate);
      if (valid && object.account === certificate.account) expect(check).not.toThrow();
      else expect(codeOf(check)).toBe(valid ? 'bad_request' : 'invalid_signature');
    });
  });

  test('of two updates on one head the first takes effect, the other after a new signature', () => {
    const { starting_hash, first, conflicting, retry, retry_expected_hash } = data.concurrency;
    const start = chain.after(2);
    expect(start.head).toBe(starting_hash);
    const next = chain.apply(start, first);
    expect(chain.refuse(next, conflicting)).toBe('state_conflict');
    expect(chain.apply(next, retry).head).toBe(retry_expected_hash);
  });

  test.each([...data.same_value_updates.cases])('an update to the same value: $name', (item) => {
    const { starting_event_index, starting_hash } = data.same_value_updates;
    const start = chain.after(starting_event_index);
    expect(start.head).toBe(starting_hash);
    const after = chain.apply(start, item.event);
    expect(after.head).toBe(item.expected_hash);
    expect(plain(after)).toEqual(item.expected_projection);
  });

  test('an ownership round trip does not revive a signed transfer', () => {
    const { starting_event_index, starting_hash, steps, replay_event } = data.ownership_round_trip;
    let group = chain.after(starting_event_index);
    expect(group.head).toBe(starting_hash);
    const owner = group.owner;
    for (const step of steps) group = checkStep(chain, group, step);
    expect(group.owner).toBe(owner);
    const again = { ...copy(replay_event), sequence: group.sequence + 1 };
    const { expected_replay_error } = data.ownership_round_trip;
    expect(chain.refuse(group, again)).toBe(expected_replay_error);
    expect(replay_event.sequence).toBe(steps[0]?.event.sequence);
    expect(replay_event.accepted_at).toBe(steps[0]?.event.accepted_at);
  });

  test.each([...data.ban_transitions.cases])('bans: $name', ({ steps }) => {
    const { starting_event_index, starting_hash, starting_key_epoch } = data.ban_transitions;
    let group = chain.after(starting_event_index);
    expect([group.head, group.epoch]).toEqual([starting_hash, starting_key_epoch]);
    for (const step of steps) {
      const verified = verifyGroupEvent(network, step.event, chain.signers);
      const { left, advancesEpoch } = decideGroupEvent(group, verified);
      expect([...left].sort()).toEqual([...(step.expected_removed_accounts ?? [])].sort());
      expect(step.event.epoch > group.epoch).toBe(advancesEpoch);
      group = checkStep(chain, group, step);
    }
  });

  describe('visibility', () => {
    test.each([...data.visibility.cases])('$name', ({ intervals, expected_sequences }) => {
      const access = intervals.map(
        ([from, to]): DeviceAccess => ({
          messages: to === null ? { from } : { from, to },
          keys: { from: 0 },
          authority: true,
        }),
      );
      const visible = data.visibility.timeline.filter(
        ({ sequence, kind, retained }) =>
          kind === 'management' || (retained && mayReadMessage(access, sequence)),
      );
      expect(visible.map(({ sequence }) => sequence)).toEqual(expected_sequences);
    });
  });

  test('a page has only events after the requested position', () => {
    const { sync_response } = data;
    expect(codeOf(() => checkGroupSyncPage(network, sync_response, { after: 0 }))).toBe(
      'bad_request',
    );
    const bad = { ...sync_response, events: [], has_more: true };
    expect(codeOf(() => checkGroupSyncPage(network, bad, {}))).toBe('bad_request');
  });
}
