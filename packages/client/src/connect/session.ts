/** Authentication at one address of one relay (02 §9, §10). */
import {
  type AccountSigner,
  accountAuthInput,
  checkChallenge,
  checkRelayInfo,
  checkSessionCredentials,
  type DeviceCertificate,
  type DeviceSigner,
  deriveDeviceId,
  deviceAuthInput,
  encodeBase64url,
  type Network,
  type RelayInfo,
  type SessionMode,
} from '@posthouse/protocol';
import { type Clock, unixSeconds } from '../environment.ts';
import { checkRelayAnswer, isRefusal, RelayMisbehaviour } from '../errors.ts';
import type { VerifiedRelay } from './discovery.ts';
import type { Wire } from './wire.ts';

/** What a proof is bound to: one relay, origin and nonce (02 §9.1). */
interface ProofRequest {
  readonly relayId: string;
  readonly origin: string;
  readonly nonce: string;
  /** Unix seconds, on the relay's clock as far as it is known. */
  readonly timestamp: number;
}

/** Declared by a relay that takes new accounts by invite (02 §9.4). */
const inviteCapability = 'posthouse.registration.invite';

/** Proves to be an account, or a device of one. */
export interface Identity {
  readonly mode: SessionMode;
  readonly account: string;
  /** Shown to a relay that takes new accounts by invite, and to no other (02 §9.4). */
  readonly inviteCode?: string | undefined;
  /** Makes the parameters of the verify method. */
  prove(request: ProofRequest): Promise<object>;
}

/** Makes the identity of a device. The certificate is read each time: it may have been renewed. */
export function deviceIdentity(
  network: Network,
  device: DeviceSigner,
  certificate: () => Promise<DeviceCertificate>,
  account: string,
): Identity {
  return {
    mode: 'device',
    account,
    async prove({ relayId, origin, nonce, timestamp }) {
      const signer = await certificate();
      const input = deviceAuthInput(network, {
        relay_id: relayId,
        origin,
        account,
        device_id: deriveDeviceId(network, signer),
        nonce,
        timestamp,
      });
      const signature = encodeBase64url(device.sign(input));
      return { nonce, timestamp, signer_certificate: signer, device_signature: signature };
    },
  };
}

/** Makes the identity of an account, proved with the account key. */
export function accountIdentity(
  network: Network,
  signer: AccountSigner,
  inviteCode?: string,
): Identity {
  return {
    mode: 'account',
    account: signer.account,
    inviteCode,
    async prove({ relayId, origin, nonce }) {
      const input = accountAuthInput(network, {
        relay_id: relayId,
        origin,
        account: signer.account,
        account_public_key: signer.publicKey,
        nonce,
      });
      const signature = encodeBase64url(await signer.sign(input));
      return { nonce, account_public_key: signer.publicKey, account_signature: signature };
    },
  };
}

/** An established session. Both times are on the local clock. */
export interface Session {
  readonly token: string;
  /** Unix milliseconds at which the session is due for renewal. */
  readonly renewAt: number;
  /** Unix milliseconds at which the relay ends it. */
  readonly endsAt: number;
}

/**
 * The clock of one relay. In requests, and only in those to this relay, its time is used only after
 * it refused ours with `clock_skew` (02 §9.6).
 */
export class RelayClock {
  readonly #clock: Clock;
  #observed = 0;
  #ahead = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Unix seconds for the times in proofs and requests to this relay. */
  now(): number {
    return unixSeconds(this.#clock) + this.#ahead;
  }

  /** Unix seconds by the relay's clock as last observed, to judge a deadline that it states. */
  relayNow(): number {
    return unixSeconds(this.#clock) + this.#observed;
  }

  /** Stores the current time as the relay stated it. */
  observe(relayNow: number): void {
    this.#observed = relayNow - unixSeconds(this.#clock);
  }

  /** Uses the relay's clock from now on, as last observed. */
  adopt(): void {
    this.#ahead = this.#observed;
  }
}

/** Fraction of a session's lifetime after which it is renewed. */
const renewalShare = 0.8;

export interface AuthenticationTarget {
  readonly relay: VerifiedRelay;
  /** Origin of the wire's address. */
  readonly origin: string;
  readonly identity: Identity;
  readonly clock: Clock;
  readonly relayClock: RelayClock;
}

/**
 * Opens a session, or renews the session of a WebSocket. After `clock_skew` it retries once with
 * the relay's clock, a new challenge and a new signature (02 §9.6).
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function authenticate(
  wire: Wire,
  target: AuthenticationTarget,
  signal: AbortSignal,
): Promise<Session> {
  try {
    return await authenticateOnce(wire, target, { signal, adoptClock: false });
  } catch (error) {
    if (!isRefusal(error, 'clock_skew')) throw error;
    return await authenticateOnce(wire, target, { signal, adoptClock: true });
  }
}

async function authenticateOnce(
  wire: Wire,
  { relay, origin, identity, clock, relayClock }: AuthenticationTarget,
  { signal, adoptClock }: { readonly signal: AbortSignal; readonly adoptClock: boolean },
): Promise<Session> {
  const { account, mode } = identity;
  const challenge = await wire.exchange('auth.challenge', { account }, { signal });
  const { nonce, created_at: createdAt } = checkRelayAnswer(
    'invalid_challenge',
    'auth.challenge',
    () => {
      checkChallenge(challenge);
      return challenge;
    },
  );
  const started = clock.milliseconds();
  relayClock.observe(createdAt);
  if (adoptClock) relayClock.adopt();
  const proof = await identity.prove({
    relayId: relay.relayId,
    origin,
    nonce,
    timestamp: relayClock.now(),
  });
  const method = mode === 'device' ? 'auth.device.verify' : 'auth.account.verify';
  const { inviteCode } = identity;
  const takesCode =
    inviteCode !== undefined && relay.descriptor.capabilities?.includes(inviteCapability) === true;
  const params = takesCode ? { ...proof, invite_code: inviteCode } : proof;
  const answer = await wire.exchange(method, params, { signal });
  const claimed = (answer as { mode?: unknown } | null)?.mode;
  if (claimed !== undefined && claimed !== mode) {
    throw new RelayMisbehaviour('wrong_session_mode', `expected a ${mode} session`, { method });
  }
  const credentials = checkRelayAnswer('invalid_session', method, () => {
    checkSessionCredentials(answer, mode);
    return answer;
  });
  // Both instants are the relay's, so their difference needs no common clock.
  const life = (credentials.expires_at - createdAt) * 1_000;
  if (life <= 0) {
    throw new RelayMisbehaviour('invalid_session', 'the session has already ended', { method });
  }
  return {
    token: credentials.token,
    renewAt: started + life * renewalShare,
    endsAt: started + life,
  };
}

/**
 * Confirms that the other end is the relay of the descriptor (02 §11.2).
 * @throws RelayMisbehaviour `wrong_relay_id`
 */
export async function confirmRelay(
  wire: Wire,
  relay: VerifiedRelay,
  signal: AbortSignal,
): Promise<RelayInfo> {
  const info = await wire.exchange('relay.info', {}, { signal });
  const claimed = (info as { relay_id?: unknown } | null)?.relay_id;
  if (typeof claimed === 'string' && claimed !== relay.relayId) {
    throw new RelayMisbehaviour('wrong_relay_id', 'relay.info is of another relay', {
      method: 'relay.info',
    });
  }
  return checkRelayAnswer('malformed_result', 'relay.info', () => {
    checkRelayInfo(info, relay.descriptor);
    return info;
  });
}
