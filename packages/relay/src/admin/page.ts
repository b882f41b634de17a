/** Serves the operator's page at `/admin/`: known names only, from memory (0041). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ProtocolError } from '@posthouse/protocol';
import { fileHeaders, pickEncoding, type ServedFile } from '../web/index.ts';

/** The page asks this relay alone, runs its own script alone, and has no worker. */
const pageHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

const pathOf = ({ url = '' }: IncomingMessage) => url.split('?', 1)[0] ?? '';

/** Whether a request is for the page or one of its files, and not for a verb. */
export function isPageRequest(request: IncomingMessage): boolean {
  return !pathOf(request).startsWith('/admin/v1/');
}

/**
 * Answers a request for the page.
 *
 * @throws ProtocolError `method_not_found` for an unknown name, or if the page was not built
 */
export function sendPage(
  request: IncomingMessage,
  response: ServerResponse,
  files: ReadonlyMap<string, ServedFile>,
): void {
  const { method, headers } = request;
  const path = pathOf(request);
  if (files.size === 0) {
    throw new ProtocolError(
      'method_not_found',
      'the page was not built: run npm run build:web, and restart the relay',
    );
  }
  if (method !== 'GET' && method !== 'HEAD') {
    // A body that is not read would be taken for the next request.
    response.writeHead(405, { allow: 'GET, HEAD', connection: 'close' }).end();
    return;
  }
  if (path === '/admin') {
    response.writeHead(308, { ...pageHeaders, location: '/admin/' }).end();
    return;
  }
  const file = files.get(path.slice('/admin/'.length) || 'index.html');
  if (file === undefined) throw new ProtocolError('method_not_found', 'the page has no such file');
  const encoding = pickEncoding(file, String(headers['accept-encoding'] ?? ''));
  const body = file.bodies.get(encoding) as Buffer;
  const ofFile = fileHeaders(file, encoding);
  if (headers['if-none-match'] === ofFile.etag) {
    response.writeHead(304, { ...pageHeaders, ...ofFile }).end();
    return;
  }
  const length = { 'content-type': file.type, 'content-length': body.length };
  response.writeHead(200, { ...pageHeaders, ...ofFile, ...length });
  response.end(method === 'HEAD' ? undefined : body);
}
