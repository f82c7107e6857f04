# Numbers of R mclust for clusters: merged components, bootstrap standard errors, bootstrap likelihood ratio tests.
# To regenerate, from the repository's root:
#
#   python tests/golden/make_inputs.py build/golden
#   Rscript tests/golden/mclust_clusters.R build/golden tests/golden/mclust_clusters.json
#
# Needs the R packages mclust and jsonlite.

suppressPackageStartupMessages(library(mclust))
library(jsonlite)

args <- commandArgs(trailingOnly = TRUE)
control <- emControl(tol = c(1e-12, 1e-14), itmax = c(10000, 10000))
B <- 2000

read_matrix <- function(name) unname(as.matrix(read.csv(file.path(args[1], paste0(name, ".csv")), header = FALSE)))
components_first <- function(x) aperm(x, rev(seq_along(dim(x))))

fit <- function(name) {
  x <- read_matrix(name)
  end <- me(modelName = "VVV", data = x, z = read_matrix(paste0(name, "_z")), prior = NULL, control = control)
  list(x = x, end = end)
}

parameters <- function(end) {
  list(
    loglik = end$loglik,
    pro = end$parameters$pro,
    mean = t(end$parameters$mean),
    sigma = components_first(end$parameters$variance$sigma)
  )
}

merging <- function(name) {
  made <- fit(name)
  z <- made$end$z
  K <- ncol(z)
  object <- mclust:::combi(made$x, list(G = K, z = z))
  entropy <- numeric(K)
  z0 <- z
  merged <- matrix(0L, K - 1, 2)  # columns that are merged into k clusters, from 0
  for (k in K:1) {
    z0 <- t(object$combiM[[k]] %*% t(z0))
    entropy[k] <- -sum(mclust:::xlog(z0))
    if (k < K) merged[k, ] <- which(object$combiM[[k]][rowSums(object$combiM[[k]]) == 2, ] == 1) - 1L
  }
  optimal <- clustCombiOptim(object, reg = 2)
  list(
    column_sums = colSums(made$x),
    parameters = parameters(made$end),
    entropy = entropy,
    merged = merged,
    n_clusters = optimal$numClusters.combi,
    classification = lapply(object$classification, function(label) as.integer(label) - 1L)
  )
}

# standard deviations over resamples; mclust takes an object of class Mclust, so all but the start is its own
errors <- function(name, type) {
  made <- fit(name)
  model <- Mclust(made$x, G = ncol(made$end$z), modelNames = "VVV", verbose = FALSE)
  set.seed(1)
  boot <- MclustBootstrap(model, nboot = B, type = type, verbose = FALSE)
  s <- summary(boot, what = "se")
  order <- order(-model$parameters$pro)
  list(
    loglik = model$loglik,
    pro = s$pro[order],
    mean = t(s$mean)[order, ],
    variance = t(apply(s$variance, 3, diag))[order, ]
  )
}

tests <- function(name) {
  x <- read_matrix(name)
  set.seed(1)
  result <- mclustBootstrapLRT(x, modelName = "VVV", nboot = 199, verbose = FALSE)
  list(statistic = result$obs, p_value = result$p.value, selected = result$G)
}

out <- list(
  R = R.version.string,
  mclust = as.character(packageVersion("mclust")),
  n_resamples = B,
  merging = list(crossed = merging("crossed")),
  errors = list(rows = errors("synthetic", "bs"), weights = errors("synthetic", "wlbs")),
  tests = list(synthetic = tests("synthetic"))
)
text <- toJSON(out, digits = I(16), auto_unbox = TRUE, na = "null", null = "null")
if (length(args) > 1) writeLines(text, args[2]) else writeLines(text)
