// The site of the Markdown pages: scripts/site.sh copies them to src, where they keep their paths.
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

const repository = 'https://github.com/dma-copy/dma-copy'
const sources = join(import.meta.dirname, '..', 'src')

const page = (text, link) => ({ text, link })

const use = [
  page('Getting started', '/docs/guide/getting-started'),
  page('First hour on a card', '/docs/guide/hardware'),
  page('Copying', '/docs/guide/copying'),
  page('Between machines', '/docs/guide/machines'),
  page('Troubleshooting', '/docs/guide/troubleshooting'),
  page('Questions', '/docs/guide/faq'),
]

const operate = [
  page('The service', '/docs/guide/service'),
  page('Many peers', '/docs/guide/fleet'),
  page('Security', '/docs/SECURITY'),
  page('Reporting a vulnerability', '/SECURITY'),
  page('Changes', '/CHANGELOG'),
]

const sdk = [
  page('DOCA without a card', '/softdoca/README'),
  page('The kit', '/softdoca/docs/SDK'),
  page('The software device', '/softdoca/docs/SOFTDEVICE'),
  page('Functions of the kit', '/softdoca/docs/reference/functions'),
  page('Limits and quirks', '/softdoca/docs/reference/settings'),
  page('Names of older guides', '/softdoca/docs/older-names'),
  page("NVIDIA's guides", '/docs/SEEDS'),
]

const internals = [
  page('Architecture', '/docs/internals/architecture'),
  page('Reference protocol', '/docs/internals/protocol/reference'),
  page('Native protocol', '/docs/internals/protocol/native'),
  page('Service protocol', '/docs/internals/protocol/service'),
  page('Secure channel', '/docs/internals/protocol/secure'),
  page('State tables and vectors', '/internal/negotiate/README'),
  page('Tests', '/docs/internals/testing'),
  page('Benchmarks', '/docs/internals/benchmarks'),
  page('Decisions', '/docs/internals/decisions'),
  page('The lab', '/lab/README'),
  page('Contributing', '/CONTRIBUTING'),
]

// The pages of docs/reference, by their names.
const reference = readdirSync(join(sources, 'docs/reference'), { recursive: true })
  .filter((file) => file.endsWith('.md')).sort()
  .map((file) => page(file.replace(/^commands\/|\.md$/g, ''), `/docs/reference/${file.replace(/\.md$/, '')}`))

const lookUp = { text: 'Reference', items: reference, collapsed: true }
const tabs = {
  Use: [{ text: 'Use', items: use }, lookUp],
  Operate: [{ text: 'Operate', items: operate }, lookUp],
  SDK: [{ text: 'SDK', items: sdk }],
  Internals: [{ text: 'Internals', items: internals }],
}

// Links to what is no page of the site lead to the repository.
function linksToTheRepository(md) {
  md.core.ruler.push('repository', ({ tokens, env }) => {
    for (const link of tokens.flatMap((t) => t.children ?? []).filter((t) => t.type === 'link_open')) {
      const href = link.attrGet('href')
      const path = normalize(join(dirname(env.relativePath), href.split('#')[0]))
      if (!/^(#|[a-z]+:)/.test(href) && !(path.endsWith('.md') && existsSync(join(sources, path)))) {
        link.attrSet('href', `${repository}/blob/main/${path}`)
      }
    }
  })
}

// GitHub's names of headings, which the pages link to.
const slugify = (s) => s.toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, '').trim().replaceAll(' ', '-')

export default {
  title: 'dma-copy',
  description: 'Copies files between a host and its BlueField DPU',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  srcDir: 'src',
  outDir: 'dist',
  base: process.env.SITE_BASE ?? '/',
  markdown: { config: linksToTheRepository, anchor: { slugify } },
  themeConfig: {
    search: { provider: 'local' },
    nav: Object.entries(tabs).map(([text, [{ items }]]) => ({
      text, link: items[0].link, activeMatch: `^(${items.map((p) => p.link).join('|')})(\\.html)?$`,
    })),
    sidebar: Object.fromEntries([
      ['/docs/reference/', tabs.Use],
      ...Object.values(tabs).flatMap((groups) => groups[0].items.map((p) => [p.link, groups])),
    ]),
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: repository }],
  },
}
