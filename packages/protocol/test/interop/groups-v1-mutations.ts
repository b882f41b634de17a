/** Mutations of the vectors' chain, of which the rejected cases are made. */
import {
  advanceGroup,
  type ErrorCode,
  encodeBase64url,
  type GroupEvent,
  Network,
  verifyDeviceCertificate,
  verifyGroupApplication,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import { type Chain, codeOf, copy } from './groups-v1-chain-state.ts';

export interface Rejection {
  readonly code: ErrorCode;
  /** The codes of every refusal that the case asks for. */
  readonly run: (chain: Chain) => ErrorCode | ErrorCode[];
}

export const zeroSignature = encodeBase64url(new Uint8Array(64));

export const event = (chain: Chain, index: number) =>
  copy(chain.data.chain[index]?.event) as GroupEvent;

export const request = (chain: Chain, label: string) => {
  const item = chain.data.member_requests.find((each) => each.label === label);
  return copy(item?.request) as JsonObject & { device_signature: string; account: string };
};

export const accountOf = (chain: Chain, label: string) => chain.player(label).account;

/** The body of `$type` `group.<name>`. */
export const body = (chain: Chain, name: string, members: JsonObject) => ({
  $type: chain.network.type(`group.${name}`),
  ...members,
});

/** A member signs a batch against accounts after `chain[index]`. */
export const batch =
  (name: string, by: string, after: number, targets: string[], epoch?: number) =>
  (chain: Chain): ErrorCode => {
    const group = chain.after(after);
    const accounts = targets.map((label) => accountOf(chain, label));
    const options = { epoch: epoch ?? group.epoch + 1 };
    return chain.refuse(group, chain.event(group, by, body(chain, name, { accounts }), options));
  };

export const approve = (chain: Chain, by: string, after: number, label: string): ErrorCode => {
  const group = chain.after(after);
  const { account, key } = chain.player(label);
  const members = [{ account, member_encryption_public_key: key }];
  const approval = body(chain, 'application.approval', { members });
  return chain.refuse(group, chain.event(group, by, approval, { epoch: group.epoch + 1 }));
};

/** `B_application` under another network. */
export const inNetwork = (chain: Chain, context: string): ErrorCode => {
  const { word, primitives } = chain.network;
  const network = new Network({ context, word, primitives });
  const { certificate } = chain.player('B');
  return codeOf(() =>
    verifyGroupApplication(network, request(chain, 'B_application'), certificate),
  );
};

export const certificateOfB = (chain: Chain, change: JsonObject): ErrorCode => {
  const certificate = { ...copy(chain.player('B').certificate), ...change };
  return codeOf(() => verifyDeviceCertificate(chain.network, certificate));
};

/** A case of another section, applied once and then again unchanged. */
export const repeatSameValue =
  (name: string) =>
  (chain: Chain): ErrorCode => {
    const { starting_event_index, cases } = chain.data.same_value_updates;
    const item = cases.find((each) => each.name === name);
    const once = copy(item?.event) as GroupEvent;
    const group = chain.apply(chain.after(starting_event_index), once);
    return chain.refuse(group, { ...once, sequence: once.sequence + 1 });
  };

export const stepsOfBan = (chain: Chain, name: string) => {
  const { starting_event_index, cases } = chain.data.ban_transitions;
  const steps = cases.find((each) => each.name === name)?.steps ?? [];
  return {
    start: chain.after(starting_event_index),
    events: steps.map((each) => copy(each.event)),
  };
};

export const banOfAdministrator = 'owner_bans_administrator_then_unbans';

/** Events of the chain in another order, as a page; the code at which it is blocked. */
export const replay = (chain: Chain, indexes: number[]): ErrorCode | undefined => {
  const events = indexes.map((index, position) => ({ ...event(chain, index), sequence: position }));
  const page = { events, signers: chain.signers, has_more: false };
  return advanceGroup(chain.network, chain.anchor, page).blocked?.error.code;
};
