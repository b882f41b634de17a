import {
  encodeQuery,
  type MethodName,
  methodPath,
  methods,
  type Network,
} from '@posthouse/protocol';
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import { httpResult } from './check-response.ts';
import type { Transport } from './transport.ts';
import type { ExchangeOptions, Wire } from './wire.ts';

/** Far above the size of a page of a few hundred records. */
const maxResponseBytes = 16_777_216;

/** Exchanges with one HTTPS base address of a verified descriptor. */
export class HttpWire implements Wire {
  readonly kind = 'http';
  readonly address: string;
  readonly #network: Network;
  readonly #transport: Transport;

  constructor(address: string, network: Network, transport: Transport) {
    this.address = address;
    this.#network = network;
    this.#transport = transport;
  }

  async exchange(
    method: MethodName,
    params: object,
    { token, signal }: ExchangeOptions,
  ): Promise<JsonValue> {
    const definition = methods[method];
    const verb = httpVerb(method, params);
    const query = verb === 'GET' ? encodeQuery(definition, params as JsonObject) : '';
    const hasBody = verb !== 'GET' && Object.keys(params).length > 0;
    const response = await this.#transport.request({
      verb,
      url: `${this.address.replace(/\/$/, '')}${methodPath(method)}${query === '' ? '' : `?${query}`}`,
      headers: {
        accept: 'application/json',
        ...(hasBody ? { 'content-type': 'application/json' } : {}),
        ...(token === undefined ? {} : { [this.#network.sessionHeader]: token }),
      },
      ...(hasBody ? { body: JSON.stringify(params) } : {}),
      signal,
      maxBytes: maxResponseBytes,
    });
    return httpResult(method, response);
  }

  close(): void {}
}

/** Chooses the verb: `device.state.resolve` is posted if a query string cannot express it (03 §5.1). */
function httpVerb(method: MethodName, params: object) {
  const { http } = methods[method];
  const scalars = Object.values(params).every((value) => typeof value !== 'object');
  const verb = scalars ? http[0] : http.at(-1);
  if (verb === undefined) throw new TypeError(`${method} has no HTTP form`);
  return verb;
}
