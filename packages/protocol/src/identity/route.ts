import type { SignatureCheck } from '../crypto/primitives.ts';
import { verifySignatures } from '../crypto/signatures.ts';
import { badRequest } from '../errors.ts';
import { canonicalWith } from '../json/canonical.ts';
import { limits } from '../limits.ts';
import {
  AccountId,
  AccountPublicKey,
  Counter,
  checkCanonicalSize,
  checkNoNull,
  checkObject,
  RelayId,
  Signature,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
} from '../schema.ts';
import { checkAccountKey } from './certificate.ts';
import type { Network } from './network.ts';
import { deriveRelayId } from './relay-id.ts';
import { signatureMember } from './signature-member.ts';
import type { AccountSigner } from './signers.ts';

/** Which relay is an account's home (chapter 01, section 17.1; 03, section 3.4). */
export const AccountRoute = Type.Object({
  $type: TypeName,
  account: AccountId,
  account_public_key: AccountPublicKey,
  revision: Counter,
  relay_id: RelayId,
  updated_at: UnixSeconds,
  expires_at: UnixSeconds,
  account_signature: Signature,
  /** Absent in a draft, present in a final document. */
  relay_signature: Type.Optional(Signature),
});
export type AccountRoute = Static<typeof AccountRoute>;
/** A route both sides signed. */
export type FinalRoute = AccountRoute & { relay_signature: string };

/**
 * Checks a draft, as published by a client, but for its signature: `relay_signature` is absent.
 *
 * @throws ProtocolError `bad_request`; `request_too_large` when already the draft is over the limit
 *   of the final document
 * @example
 * checkRouteDraft(network, value);
 * const route = await cosignRoute(network, relaySigner, value);
 */
export function checkRouteDraft(
  network: Network,
  value: unknown,
  path = '',
): asserts value is AccountRoute {
  checkAnyRoute(network, value, path);
  if (value.relay_signature !== undefined) {
    throw badRequest(path, 'relay_signature does not belong in a draft');
  }
}

/**
 * Checks a final route but for its signatures and whether it has expired.
 *
 * @throws ProtocolError `bad_request`; `request_too_large` over 4,096 bytes
 * @example
 * checkRoute(network, value);
 * console.log(value.relay_id);
 */
export function checkRoute(
  network: Network,
  value: unknown,
  path = '',
): asserts value is FinalRoute {
  checkAnyRoute(network, value, path);
  if (value.relay_signature === undefined) throw badRequest(path, 'relay_signature is missing');
}

function checkAnyRoute(
  network: Network,
  value: unknown,
  path: string,
): asserts value is AccountRoute {
  checkObject(network, { type: 'account.route', schema: AccountRoute }, value, path);
  checkNoNull(value, path);
  const period = value.expires_at - value.updated_at;
  if (period <= 0 || period > limits.routePeriod) {
    throw badRequest(path, 'expires_at is not within 3,650 days after updated_at');
  }
  checkCanonicalSize(value, limits.routeBytes, path);
  checkAccountKey(network, value, path);
}

const bothSignatures = ['account_signature', 'relay_signature'];
const byAccount = signatureMember('account_signature', 'p256', bothSignatures);
const byRelay = signatureMember('relay_signature', 'p256');

/**
 * Returns the bytes that the account signs: the route without both signatures.
 *
 * @example
 * const bytes = routeAccountInput(network, route);
 */
export function routeAccountInput(
  network: Network,
  route: Omit<AccountRoute, 'account_signature' | 'relay_signature'>,
): Uint8Array {
  return byAccount.input(network, route);
}

/**
 * Returns the bytes that the relay signs: the route with the account's signature as received.
 *
 * @example
 * const bytes = routeRelayInput(network, route);
 */
export function routeRelayInput(
  network: Network,
  route: Omit<AccountRoute, 'relay_signature'>,
): Uint8Array {
  return byRelay.input(network, route);
}

/**
 * Returns the account's signature on a draft or final route.
 *
 * @example
 * verifySignatures(primitives, routeDraftSignatures(network, route), 'route draft');
 */
export function routeDraftSignatures(network: Network, route: AccountRoute): SignatureCheck[] {
  return [byAccount.check(network, route, route.account_public_key)];
}

/**
 * Returns both signatures of a final route.
 *
 * @param relayPublicKey `public_key` of the named relay's verified current descriptor
 * @example
 * const checks = routeSignatures(network, route, descriptor.public_key);
 */
export function routeSignatures(
  network: Network,
  route: FinalRoute,
  relayPublicKey: string,
): SignatureCheck[] {
  return [...routeDraftSignatures(network, route), byRelay.check(network, route, relayPublicKey)];
}

/**
 * Checks a final route with both signatures. That the relay's registry record is `active`, and the
 * route's times, are for the caller.
 *
 * @throws ProtocolError as `checkRoute`; `bad_request` if the key does not derive the route's
 *   `relay_id`; `invalid_signature`
 * @example
 * verifyRoute(network, value, { relayPublicKey: descriptor.public_key });
 * if (now >= value.expires_at) console.log('refresh the route');
 */
export function verifyRoute(
  network: Network,
  value: unknown,
  { relayPublicKey }: { readonly relayPublicKey: string },
): asserts value is FinalRoute {
  checkRoute(network, value);
  checkRouteRelayKey(network, value, relayPublicKey);
  verifySignatures(network.primitives, routeSignatures(network, value, relayPublicKey), 'route');
}

/**
 * Checks that a relay's key is the one of the relay a route names.
 * @throws ProtocolError `bad_request`
 */
function checkRouteRelayKey(
  network: Network,
  route: Pick<AccountRoute, 'relay_id'>,
  relayPublicKey: string,
): void {
  if (deriveRelayId(network, relayPublicKey) !== route.relay_id) {
    throw badRequest('relay_id', 'is not the relay of this key');
  }
}

/**
 * Returns the text by which two routes of one revision are compared: the network-bound JSON without
 * both signatures. Equal texts are the same route, even with different signature bytes (chapter 03,
 * section 3.4).
 *
 * @example
 * const isSame = routeContent(network, route) === routeContent(network, otherRoute);
 */
export function routeContent(network: Network, route: AccountRoute): string {
  return canonicalWith(route, {
    omit: bothSignatures,
    add: { $context: network.context },
  });
}

/** The members of a route that the account chooses. */
export interface RouteFields {
  readonly revision: number;
  readonly relay_id: string;
  readonly updated_at: number;
  readonly expires_at: number;
}

/**
 * Makes a route draft, signed by the account.
 *
 * @throws ProtocolError `bad_request` for a period the protocol does not allow
 * @example
 * const revision = nextRevision(undefined, Date.now());
 * const fields = { revision, relay_id, updated_at: now, expires_at: now + 31_536_000 };
 * const draft = await signRouteDraft(network, signer, fields);
 */
export async function signRouteDraft(
  network: Network,
  account: AccountSigner,
  fields: RouteFields,
): Promise<AccountRoute> {
  const unsigned = {
    ...fields,
    $type: network.type('account.route'),
    account: account.account,
    account_public_key: account.publicKey,
  };
  const draft = await byAccount.sign(network, unsigned, account);
  checkRouteDraft(network, draft);
  return draft;
}

/**
 * Adds the relay's signature to a draft and changes nothing else.
 *
 * @throws ProtocolError `bad_request` if the route names another relay; `request_too_large` if the
 *   final document is over 4,096 bytes
 * @example
 * const final = await cosignRoute(network, relaySigner, route);
 */
export async function cosignRoute(
  network: Network,
  relay: AccountSigner,
  draft: AccountRoute,
): Promise<FinalRoute> {
  checkRouteRelayKey(network, draft, relay.publicKey);
  const route = await byRelay.sign(network, draft, relay);
  checkRoute(network, route);
  return route;
}
