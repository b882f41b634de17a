/** What a relay serves besides methods: a page for people, and its methods for programs. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { FrontPages } from '../about/index.ts';
import { unknownMethod } from './early-errors.ts';

/** For how long a browser or proxy may keep them. */
const cacheControl = 'max-age=300';

/** Whether the caller takes HTML: browsers say so, programs that call methods do not. */
const takesHtml = (accept = '') => /\btext\/html\b|\*\/\*/.test(accept);

/**
 * Adds `/`, `/openrpc.json` and `/openapi.json` of the host, not of a base address. Without `Accept`
 * for HTML, `/` stays a path that no method has. `charge` counts a request for the caller's address.
 */
export function addPageRoutes(
  app: FastifyInstance,
  pages: FrontPages,
  charge: (request: FastifyRequest) => void,
): void {
  const route = (url: string, type: string, text: () => string) => {
    app.get(url, async (request, reply) => {
      if (url === '/' && !takesHtml(request.headers.accept)) throw unknownMethod();
      charge(request);
      return reply
        .headers({ ...pages.headers, 'cache-control': cacheControl, vary: 'accept' })
        .type(type)
        .send(text());
    });
  };
  route('/', 'text/html; charset=utf-8', () => pages.page());
  route('/openrpc.json', 'application/json', () => pages.openRpc());
  route('/openapi.json', 'application/json', () => pages.openApi());
}
