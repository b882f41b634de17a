/** What a relay of the kit answers to the relay under test, unless a check says otherwise. */
import type { PeerStream } from '@posthouse/peer';
import { deriveDeviceId, type ErrorCode, errorCatalogue, type Network } from '@posthouse/protocol';
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from '@posthouse/protocol/json';
import { unixSeconds } from '../fixtures/account.ts';
import type { HomeAccount } from './home-account.ts';

/** A request or notification of the relay under test. */
export interface ReceivedCall {
  readonly method: string;
  readonly params: JsonObject;
  /** Absent in a notification. */
  readonly id: JsonValue | undefined;
  /** The frame's text. */
  readonly text: string;
  /** Milliseconds of this machine's clock that never go back. */
  readonly at: number;
}

/** What is sent for a request. */
export type ReplyToCall =
  | { readonly result: JsonValue }
  | { readonly error: JsonObject }
  /** The bytes of a frame. */
  | { readonly frame: string | Uint8Array }
  /** The stream is reset, or ended without an answer. */
  | 'reset'
  | 'ended';

export type Answering = (call: ReceivedCall) => ReplyToCall | Promise<ReplyToCall>;

/** Makes an error of the catalogue. */
export function refusal(code: ErrorCode, data?: JsonObject): ReplyToCall {
  const error = { code: errorCatalogue[code].rpc, message: code };
  return { error: data === undefined ? error : { ...error, data } };
}

/** Answers as the home relay of some accounts. */
export class RelayService {
  readonly homes: HomeAccount[] = [];
  /** Every request and notification, in order. */
  readonly received: ReceivedCall[] = [];
  readonly #network: Network;
  readonly #answers = new Map<string, Answering>();

  constructor(network: Network) {
    this.#network = network;
  }

  /** Replaces the answer to the requests of a method. */
  answer(method: string, answering: Answering): void {
    this.#answers.set(method, answering);
  }

  /** Returns the received requests of a method. */
  calls(method: string): ReceivedCall[] {
    return this.received.filter((call) => call.method === method);
  }

  /** Serves one stream of relay RPC. */
  async serveRpc(stream: PeerStream): Promise<void> {
    const frame = await stream.readFrame();
    if (frame === undefined) return;
    const text = Buffer.from(frame).toString();
    const request = parseJson(text) as JsonObject;
    const { id, method, params = {} } = request;
    const call = { id, method: String(method), params: params as JsonObject, text };
    const received = { ...call, at: performance.now() };
    this.received.push(received);
    if (id === undefined) return;
    const reply = await this.#reply(received);
    if (reply === 'reset') return stream.reset();
    if (reply === 'ended') return;
    const bytes = 'frame' in reply ? reply.frame : { jsonrpc: '2.0', id, ...reply };
    await stream.writeFrame(
      bytes instanceof Uint8Array
        ? bytes
        : Buffer.from(typeof bytes === 'string' ? bytes : JSON.stringify(bytes)),
    );
  }

  async #reply(call: ReceivedCall): Promise<ReplyToCall> {
    const answering = this.#answers.get(call.method);
    if (answering !== undefined) return await answering(call);
    return this.honest(call);
  }

  /** Answers a request as a home relay should. */
  honest({ method, params }: ReceivedCall): ReplyToCall {
    const envelope = isJsonObject(params.envelope) ? params.envelope : {};
    const home = this.homes.find(({ id }) => id === (params.account ?? envelope.to));
    if (home === undefined) return refusal('target_not_local');
    switch (method) {
      case 'device.status':
        return { result: this.#status(home, params.device_id) };
      case 'device.state.resolve':
        return { result: home.state };
      case 'profile.resolve':
        return { result: { profile: home.profile, signer_certificate: home.device.certificate } };
      case 'message.deliver':
        return { result: { status: 'target_accepted', accepted_at: unixSeconds() } };
      default:
        return refusal('method_not_found');
    }
  }

  #status(home: HomeAccount, deviceId: JsonValue | undefined): JsonObject {
    const certificate = home.state.certificates.find(
      (one) => deriveDeviceId(this.#network, one) === deviceId,
    );
    if (certificate === undefined) return { status: 'inactive' };
    return { status: 'active', expires_at: certificate.expires_at };
  }
}
