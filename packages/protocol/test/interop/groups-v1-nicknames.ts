import { describe, expect, test } from 'vitest';
import { groupMessageAad } from '../../src/groups/message.ts';
import {
  applyNickname,
  checkGroupMemberNicknameUpdate,
  clientSecretCommitment,
  type DeviceCertificate,
  decideGroupEvent,
  decodeBase64url,
  deriveDeviceId,
  deriveEpochApplicationSecret,
  deriveGroupMessageKey,
  deviceSignatures,
  deviceSigningInput,
  encodeBase64url,
  forgetNicknames,
  type GroupContent,
  type GroupMember,
  type GroupMessageEnvelope,
  type GroupNicknames,
  hex,
  Network,
  openGroupMessage,
  readGroupContent,
  type SigningDevice,
  sealGroupMessage,
  signAsDevice,
  verifyGroupEvent,
} from '../../src/index.ts';
import { canonicalJson } from '../../src/json/index.ts';
import { checkStep } from './groups-v1-chain.ts';
import { bytesOf, Chain, codeOf, copy } from './groups-v1-chain-state.ts';
import type { Groups, Local, LocalStep, Message, Names, Step } from './groups-v1-shape.ts';

export function nicknameVectors(network: Network, data: Groups): void {
  const chain = new Chain(network, data.management_chain);
  const nicknames = data.encrypted_nicknames;
  const { group_id } = data.management_chain;

  const message = (name: string) => {
    const found = nicknames.messages.find((each) => each.name === name);
    if (found === undefined) throw new Error(`no message ${name}`);
    return found;
  };
  const envelopeOf = (item: Message) => item.event.payload as GroupMessageEnvelope;
  const secretOf = (epoch: number) => {
    const found = nicknames.epoch_inputs.find((each) => each.epoch === epoch);
    return bytesOf(found?.epoch_application_secret ?? '');
  };
  const certificateAt = (source: string) =>
    data.management_chain.signer_account_binding.cases.find((each) => source.endsWith(each.name))
      ?.certificate as DeviceCertificate;
  const sender = (label: string): SigningDevice => {
    const { additional_device: extra } = nicknames;
    if (label !== extra.actor) return chain.player(label);
    const { sign } = chain.player(extra.signing_key_source.replace('actors.', ''));
    const certificate = certificateAt(extra.certificate_source);
    return { account: certificate.account, deviceId: deriveDeviceId(network, certificate), sign };
  };
  const contextOf = (item: Message) => {
    const { account: from, deviceId: from_device_id } = sender(item.actor);
    return { ...envelopeOf(item), from, from_device_id };
  };
  const open = (item: Message) =>
    openGroupMessage(network, envelopeOf(item), {
      applicationSecret: secretOf(item.event.epoch),
      sender: sender(item.actor),
    });
  const readOf = (item: Message): GroupContent =>
    readGroupContent(network, open(item) as Uint8Array, item.event.sequence);

  test('the second device of A has the key of the first and an ID of its own', () => {
    const { deviceId } = sender('A2');
    expect(deviceId).toBe(nicknames.additional_device.device_id);
    expect(deviceId).not.toBe(chain.player('A').deviceId);
  });

  test.each([...nicknames.epoch_inputs])('application secret of epoch $epoch', (input) => {
    const { epoch, client_secret_commitment } = input;
    const clientSecret = bytesOf(input.client_group_secret);
    const relaySecret = bytesOf(input.relay_epoch_secret);
    expect(clientSecretCommitment(network, group_id, clientSecret)).toBe(client_secret_commitment);
    const secrets = { group_id, epoch, client_secret_commitment, clientSecret, relaySecret };
    const secret = deriveEpochApplicationSecret(network, secrets);
    expect(encodeBase64url(secret)).toBe(input.epoch_application_secret);
  });

  test.each([...nicknames.messages])('message $name', (item) => {
    const { event, starting_event_index, message_nonce } = item;
    const envelope = envelopeOf(item);
    const before = chain.after(starting_event_index);
    const after = chain.apply(before, event);
    const head = item.management_head_hash_before_and_after;
    expect([before.head, after.head]).toEqual([head, head]);
    expect(envelope.payload.nonce).toBe(message_nonce);

    const context = contextOf(item);
    expect(context.from).toBe(item.expected_sender_account);
    expect(event.signer_device_id).toBe(context.from_device_id);
    expect(hex(groupMessageAad(network, context))).toBe(item.message_aad_utf8_hex);
    expect(hex(deviceSigningInput(network, envelope))).toBe(item.signing_input_utf8_hex);
    const key = deriveGroupMessageKey(network, secretOf(event.epoch), context);
    expect(encodeBase64url(key)).toBe(item.message_key);

    const plaintext = open(item) as Uint8Array;
    expect(hex(plaintext)).toBe(item.plaintext_utf8_hex);
    const sealed = sealGroupMessage(network, {
      group_id,
      from: sender(item.actor),
      epoch: event.epoch,
      applicationSecret: secretOf(event.epoch),
      createdAt: envelope.created_at,
      messageId: envelope.message_id,
      content: item.plaintext,
      random: () => bytesOf(message_nonce),
    });
    if (hex(plaintext) === hex(new TextEncoder().encode(canonicalJson(item.plaintext)))) {
      expect(sealed).toEqual(envelope);
    }
    if (item.expected_business_valid === false) {
      expect(codeOf(() => readOf(item))).toBe('bad_request');
    } else {
      const kind = item.expected_business_valid === null ? 'unknown' : 'nickname';
      expect(readOf(item)).toEqual({ kind, content: item.plaintext });
    }
  });

  test.each([...nicknames.field_cases])('field $name', (item) => {
    const $type = network.type('group.member.nickname.update');
    const update = item.omit === true ? { $type } : { $type, nickname: item.value };
    const check = () => checkGroupMemberNicknameUpdate(network, update);
    if (item.expected_valid) expect(check).not.toThrow();
    else expect(codeOf(check)).toBe('bad_request');
  });

  describe('authentication', () => {
    const flip = (text: string) => {
      const bytes = decodeBase64url(text) as Uint8Array;
      bytes[0] = (bytes[0] as number) ^ 1;
      return encodeBase64url(bytes);
    };
    const mutate = (envelope: GroupMessageEnvelope, mutation: string | undefined) => {
      const { payload } = envelope;
      switch (mutation) {
        case 'flip_ciphertext_byte':
          return { ...envelope, payload: { ...payload, ciphertext: flip(payload.ciphertext) } };
        case 'flip_nonce_byte':
          return { ...envelope, payload: { ...payload, nonce: flip(payload.nonce) } };
        case 'replace_group_id':
          return { ...envelope, group_id: data.keying.input.group_id as string };
        default:
          return envelope;
      }
    };

    test.each([...nicknames.authentication_cases])('$name', (item) => {
      const original = message(item.message);
      const known = ['flip_ciphertext_byte', 'flip_nonce_byte', 'replace_group_id'];
      known.push('replace_network_context');
      if (item.mutation !== undefined) expect(known).toContain(item.mutation);
      const { word, primitives, magic, registry } = network;
      const other = `neo:${Number(magic) + 1}:${registry}`;
      const foreign = item.mutation === 'replace_network_context';
      const verifier = foreign ? new Network({ context: other, word, primitives }) : network;
      const envelope = mutate(copy(envelopeOf(original)), item.mutation);
      const certificate =
        item.certificate_source === undefined
          ? chain.player(original.actor).certificate
          : certificateAt(item.certificate_source);
      const [check] = deviceSignatures(verifier, envelope, certificate);
      if (check === undefined) throw new Error('no signature');
      const valid = primitives.ed25519.verify(check.publicKey, check.message, check.signature);
      expect(valid).toBe(item.expected_signature_valid);
      const plaintext = openGroupMessage(verifier, envelope, {
        applicationSecret: secretOf(original.event.epoch),
        sender: {
          account: certificate.account,
          deviceId: deriveDeviceId(network, certificate),
        },
      });
      expect(plaintext !== undefined).toBe(item.expected_aead_valid);
    });
  });

  /** What the local cases call each result, by what this implementation calls it. */
  const resultNames = {
    applied: 'applied',
    duplicate: 'duplicate',
    older: 'ignored_older',
    previous_membership: 'ignored_previous_membership',
  } as const;

  const labels = data.management_chain.actors.map((actor) => actor.label);
  const accountOf = (label: string) => chain.player(label).account;
  const local = (known: GroupNicknames): Local =>
    Object.fromEntries(
      labels
        .filter((label) => known.has(accountOf(label)))
        .map((label) => [label, known.get(accountOf(label)) as Local[string]]),
    );

  const memberSince = (label: string, since: number): [string, GroupMember] => {
    const account = accountOf(label);
    const member_encryption_public_key = chain.player(label).key;
    return [account, { account, role: 'member', member_encryption_public_key, since }];
  };

  test.each([...nicknames.local_cases])('local state: $name', (item) => {
    const members = new Map(
      Object.entries(item.sender_membership_starts).map(([label, since]) =>
        memberSince(label, since),
      ),
    );
    const start = item.receiver_membership_start;
    members.set(...memberSince(item.receiver, start));
    const reader = accountOf(item.receiver);
    const { group_id: shown } = item;
    const profiles: Names = { ...item.account_profile_display_names };
    let known: GroupNicknames = new Map();
    const display = (): Names =>
      Object.fromEntries(
        labels
          .filter((label) => members.has(accountOf(label)))
          .map((label) => {
            const account = accountOf(label);
            return [label, known.get(account)?.nickname ?? profiles[label] ?? account];
          }),
      );

    const receive = (step: LocalStep): string => {
      const received = message(step.message as string);
      if (envelopeOf(received).group_id !== shown) return 'ignored_other_group';
      if (step.key_available === false) return 'waiting_for_key';
      if (received.expected_business_valid === false) {
        expect(codeOf(() => readOf(received))).toBe('bad_request');
        return 'rejected_content';
      }
      const content = readOf(received);
      if (content.kind !== 'nickname') return 'ignored_unknown_type';
      const { account } = sender(received.actor);
      const { sequence } = received.event;
      const update = { account, nickname: content.content.nickname, sequence };
      const applied = applyNickname(known, { group: { members }, reader }, update);
      known = applied.nicknames;
      return resultNames[applied.result];
    };
    const effectsOf = (index: number) => {
      const { event } = data.management_chain.chain[index] as Step;
      const verified = verifyGroupEvent(network, event, chain.signers);
      return decideGroupEvent(chain.after(index - 1), verified);
    };
    const manage = (step: LocalStep): string => {
      if (step.profile_update !== undefined) {
        Object.assign(profiles, step.profile_update);
        return 'profile_updated';
      }
      if (step.prune_messages === true) return 'unchanged';
      if (step.clear_local_data === true) {
        known = new Map();
        return 'reset';
      }
      const effects = effectsOf(step.management_event_index as number);
      // The reader of these cases never leaves for good; only the sender's record matters.
      known = forgetNicknames(known, effects, '');
      for (const account of effects.left) members.delete(account);
      if (step.member_leave !== undefined) {
        expect(effects.left).toContain(accountOf(step.member_leave));
        return 'reset';
      }
      if (step.member_join !== undefined) {
        const { account } = chain.player(step.member_join);
        expect(effects.joined.map((each) => each.account)).toContain(account);
        members.set(...memberSince(step.member_join, step.sequence as number));
        return 'reset';
      }
      return 'unchanged';
    };

    expect(local(known)).toEqual(item.expected_initial_local_nicknames);
    expect(display()).toEqual(item.example_initial_display_names);
    for (const step of item.steps) {
      const result = step.message === undefined ? manage(step) : receive(step);
      expect(result).toBe(step.expected_result);
      expect(local(known)).toEqual(step.expected_local_nicknames);
      expect(display()).toEqual(step.example_display_names);
    }
  });

  /** Events by message key, as a host keeps them: an equal envelope finds its first sequence. */
  test.each([...nicknames.retry_cases])('retry: $name', (item) => {
    const original = message(item.message);
    const envelope = envelopeOf(original);
    const again =
      item.retry_envelope ??
      (item.retry === undefined
        ? signAsDevice(
            network,
            { ...copy(envelope), created_at: envelope.created_at + 1 },
            sender(original.actor),
          )
        : envelopeOf(message(item.retry)));
    if (item.mutation !== undefined) expect(item.mutation).toBe('change_created_at_and_resign');
    if (item.signing_input_utf8_hex !== undefined) {
      expect(hex(deviceSigningInput(network, again))).toBe(item.signing_input_utf8_hex);
    }
    const sameKey = again.message_id === envelope.message_id;
    const sameContent = canonicalJson(again) === canonicalJson(envelope);
    if (item.expected_error !== undefined) {
      expect(item.expected_error).toBe('state_conflict');
      expect({ sameKey, sameContent }).toEqual({ sameKey: true, sameContent: false });
      return;
    }
    expect(sameKey).toBe(!item.expected_new_event);
    expect(sameContent).toBe(!item.expected_new_event);
    const { sequence } = message(item.retry as string).event;
    expect(sequence).toBe(item.expected_sequence);
    if (item.intervening === undefined) return;
    const group = chain.after(3);
    const reader = accountOf('C');
    let known: GroupNicknames = new Map();
    for (const name of [item.message, item.intervening, item.retry as string]) {
      const { plaintext, event, actor } = message(name);
      const { account } = sender(actor);
      const update = { account, nickname: plaintext.nickname, sequence: event.sequence };
      known = applyNickname(known, { group, reader }, update).nicknames;
    }
    expect(known.get(accountOf('B'))?.nickname).toBe(item.expected_nickname);
  });

  test.each([...nicknames.management_preservation])('kept across $name', (item) => {
    const carried = message(item.nickname_message);
    let group = chain.apply(chain.after(item.starting_event_index), carried.event);
    const { account } = sender(carried.actor);
    const { nickname } = carried.plaintext;
    const { sequence } = carried.event;
    const reader = group.owner;
    let { nicknames: known } = applyNickname(
      new Map(),
      { group, reader },
      { account, nickname, sequence },
    );
    for (const step of item.steps) {
      const verified = verifyGroupEvent(network, step.event, chain.signers);
      known = forgetNicknames(known, decideGroupEvent(group, verified), reader);
      group = checkStep(chain, group, step);
    }
    expect({ account, ...known.get(account) }).toEqual(item.expected_local_nickname);
  });

  test('history without the pruned message gives the same chain and no nickname', () => {
    const { omitted_sequence, expected_management_head, expected_local_nicknames } =
      nicknames.history_omission;
    const steps = data.management_chain.chain.filter(
      ({ event }) => event.sequence !== omitted_sequence,
    );
    expect(steps).toHaveLength(data.management_chain.chain.length - 1);
    let group = chain.after(0);
    for (const { event } of steps.slice(1)) group = chain.apply(group, event);
    expect(group.head).toBe(expected_management_head);
    expect(local(new Map())).toEqual(expected_local_nicknames);
  });
}
