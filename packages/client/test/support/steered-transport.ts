/** A transport that a test steers: it sees every request, and may lose or answer one itself. */
import {
  type HttpRequest,
  type HttpResponse,
  RelayUnreachable,
  type Transport,
} from '../../src/index.ts';

/** What happens to a request; `send` sends it on. */
export type Rule = (send: () => Promise<HttpResponse>) => Promise<HttpResponse>;

/** A request that was made. */
export interface MadeRequest {
  readonly method: string;
  readonly url: string;
  readonly body: string;
}

/**
 * @example
 * const steered = new SteeredTransport(world.transport());
 * steered.rules.set('account.route.publish', lostRequest);
 */
export class SteeredTransport implements Transport {
  /** By method name. */
  readonly rules = new Map<string, Rule>();
  readonly made: MadeRequest[] = [];
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async request(request: HttpRequest): Promise<HttpResponse> {
    const { pathname } = new URL(request.url);
    const method = pathname.replace(/^.*\/svc\/v1\//, '').replaceAll('/', '.');
    this.made.push({ method, url: request.url, body: String(request.body ?? '') });
    const send = () => this.#transport.request(request);
    return (await this.rules.get(method)?.(send)) ?? (await send());
  }

  /** Bodies of the requests of a method, in order. */
  bodies(method: string): string[] {
    return this.made.filter((one) => one.method === method).map(({ body }) => body);
  }
}

/** The request does not reach the relay. */
export const lostRequest: Rule = async () => {
  throw new RelayUnreachable('lost by the test', { outcomeUnknown: true });
};

/** The relay carries the request out, and its answer does not arrive. */
export const lostAnswer: Rule = async (send) => {
  await send();
  throw new RelayUnreachable('lost by the test', { outcomeUnknown: true });
};

/** The relay carries the request out, and the client gets this error. */
export function answeredBy(status: number, code: string): Rule {
  return async (send) => {
    await send();
    const body = new TextEncoder().encode(JSON.stringify({ code, message: 'of the test' }));
    return { status, contentType: 'application/json', body };
  };
}
