/** The report of a run as one HTML file, without scripts and without requests to other places. */
import type { Finding } from './runner.ts';

export interface ReportFacts {
  /** HTTPS base address of the relay. */
  readonly relay: string;
  readonly relayId: string;
  /** Name of the relay, as `relay.info` has it. */
  readonly name: string;
  /** Version of the relay, if it says one. */
  readonly relayVersion: string | undefined;
  readonly network: string;
  /** Version of the kit. */
  readonly version: string;
  readonly begun: Date;
  readonly seconds: number;
  /** Which checks were selected, if not all. */
  readonly only: readonly string[] | undefined;
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes a text for HTML; texts of the relay under test are a stranger's. */
const html = (text: string) => text.replace(/[&<>"']/g, (character) => entities[character] ?? '');

const words = { passed: 'passed', failed: 'failed', not_applicable: 'not applicable' } as const;

const style = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #ddd}
.failed td:first-child{color:#a00;font-weight:bold}.passed td:first-child{color:#060}
.reason{color:#666;overflow-wrap:anywhere}dt{font-weight:bold}dd{margin:0 0 .4rem}code{overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}th,td{border-color:#444}.failed td:first-child{color:#f88}.passed td:first-child{color:#8d8}.reason{color:#aaa}}`;

/**
 * Formats a run: what was checked, when, with which result; then each check with its clause, failed
 * ones first.
 *
 * @example
 * await writeFile('report.html', htmlReport(findings, facts));
 */
export function htmlReport(findings: readonly Finding[], facts: ReportFacts): string {
  const count = (outcome: Finding['outcome']) =>
    findings.filter((finding) => finding.outcome === outcome).length;
  const [passed, failed, left] = [count('passed'), count('failed'), count('not_applicable')];
  const sorted = [...findings].sort((a, b) => rank(a) - rank(b));
  const rows = facts.only === undefined ? 'all checks' : `checks ${facts.only.join(', ')}`;
  const about: readonly (readonly [string, string])[] = [
    ['Relay', `${facts.name}, ${facts.relay}`],
    ['Relay ID', facts.relayId],
    ['Network', facts.network],
    ['Version of the relay', facts.relayVersion ?? 'not stated'],
    ['Conformance kit', `posthouse-conformance ${facts.version}, ${rows}`],
    ['Date', `${facts.begun.toISOString()}, ${facts.seconds} s`],
    ['Result', `${passed} passed, ${failed} failed, ${left} not applicable`],
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Conformance of ${html(facts.name)}</title>
<style>${style}</style></head><body>
<h1>Conformance of ${html(facts.name)}</h1>
<dl>${about.map(([term, text]) => `<dt>${term}</dt><dd>${html(text)}</dd>`).join('')}</dl>
<table><thead><tr><th>Result</th><th>Clause</th><th>What the relay must do</th><th>Check</th></tr></thead>
<tbody>
${sorted.map(row).join('\n')}
</tbody></table></body></html>
`;
}

function rank({ outcome }: Finding): number {
  return ['failed', 'not_applicable', 'passed'].indexOf(outcome);
}

function row({ outcome, source, title, reason, id, transport }: Finding): string {
  const why = reason === undefined ? '' : `<div class="reason">${html(reason)}</div>`;
  return `<tr class="${outcome}"><td>${words[outcome]}</td><td>${html(source)}</td><td>${html(title)}${why}</td><td><code>${html(id)}</code> ${transport}</td></tr>`;
}
